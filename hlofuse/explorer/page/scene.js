// Where everything of a region stands, and how lines get from one to the other. The places are those of the
// final kernels, so that a fusion grows into room that is kept for it and nothing moves from step to step.

const ROW = 24, PAD = 12, BARE = 5;

class Scene {
  constructor(run, regionNumber) {
    this.run = run;
    this.number = regionNumber;
    this.region = run.regions[regionNumber];
    this.slots = new Map();  // "operation:final box" to its place
    this.routes = new Map();  // "operation:reader:final box of the reader", and ":within" for a line inside of it
    const kernels = this.region.kernels.map(({ box, inside }) => ({ box, inside, members: new Set(inside) }));
    const flows = this.flows(kernels);
    // Once to see who stands where; then what comes into a kernel and goes out of it is put in that order.
    let outer = kernels.map((kernel, n) => this.inside(kernel, n, flows));
    let size = this.arrange(outer, flows);
    if (outer.some((node) => node.ports)) {
      const centre = outer.map((node) => node.x + node.width / 2);
      outer = kernels.map((kernel, n) => this.inside(kernel, n, flows, centre));
      size = this.arrange(outer, flows);
    }
    this.width = size.width + 2 * PAD;
    this.height = size.height + 2 * PAD;
    outer.forEach((node) => this.settle(node));
    flows.forEach((flow, n) => this.lead(flow, size.routes[n], outer));
  }

  // The values that one kernel has from another, once for each that reads it.
  flows(kernels) {
    const index = new Map(kernels.map((kernel, n) => [kernel.box, n])), found = new Map();
    kernels.forEach(({ inside, members }, to) => {
      for (const m of inside)
        for (const op of this.run.ops.operands[m]) {
          const from = index.get(this.run.endsAs[op]);
          if (from === undefined || from === to || !kernels[from].members.has(op)) continue;
          const key = `${op}:${to}`;
          if (!found.has(key)) found.set(key, { op, from, to, readers: new Set() });
          found.get(key).readers.add(m);
        }
    });
    return [...found.values()];
  }

  arrange(outer, flows) {
    return layered(outer, flows.map(({ op, from, to }) => [from, to, outer[from].outs.get(op), outer[to].ins.get(op)]),
      { gapX: 22, gapY: 24, widest: 1500 });
  }

  // A kernel by itself: its operations, and above and below them ports for what comes in and goes out.
  inside(kernel, number, flows, centre) {
    const { ops } = this.run;
    // Alone it may stand under its final name.
    const letters = (op) => greatest(0, [this.run.names[op], this.run.finalOf(this.run.names[op])].map((name) => shortName(name, 22).length));
    const parts = kernel.inside.map((op) => {
      const quiet = ops.opcode[op] === "parameter" || ops.opcode[op] === "constant";
      return { op, width: 16 + 6.4 * letters(op), height: quiet ? ROW - 6 : ROW };
    });
    const made = { box: kernel.box, parts, ins: new Map(), outs: new Map(), inner: new Map(), ports: parts.length > 1, pad: PAD };
    if (!made.ports) {
      const [width, height] = parts.length ? [parts[0].width, parts[0].height] : [90, ROW];
      if (parts.length) [parts[0].x, parts[0].y] = [0, 0];
      return { ...made, pad: BARE, width: width + 2 * BARE, height: height + 2 * BARE };
    }
    const index = new Map(kernel.inside.map((op, n) => [op, n])), nodes = [...parts], edges = [], lines = [];
    const edge = (name, a, b) => { edges.push([a, b]); lines.push(name); };
    kernel.inside.forEach((op, n) => new Set(ops.operands[op]).forEach((o) => {
      if (index.has(o)) edge(`${o}:${op}`, index.get(o), n);
    }));
    const ports = [];
    const port = (flow, side, other) => {
      const known = ports.find((p) => p.op === flow.op && p.side === side);
      if (known) { known.hints.push(centre?.[other] ?? 0); return known; }
      const fresh = { op: flow.op, side, hints: [centre?.[other] ?? 0], width: 2, height: 0, at: nodes.length };
      ports.push(fresh);
      nodes.push(fresh);
      return fresh;
    };
    for (const flow of flows) {
      if (flow.to === number) {
        const { at } = port(flow, -1, flow.from);
        flow.readers.forEach((m) => edge(`in:${flow.op}:${m}`, at, index.get(m)));
      }
      if (flow.from === number) {
        const before = ports.length, { at } = port(flow, 1, flow.to);
        if (ports.length > before) edge(`out:${flow.op}`, index.get(flow.op), at);
      }
    }
    if (centre) for (const p of ports) p.hint = p.hints.reduce((sum, x) => sum + x, 0) / p.hints.length;
    const size = layered(nodes, edges, { gapX: 14, gapY: 14, widest: 900 });
    edges.forEach((_, n) => made.inner.set(lines[n], size.routes[n]));
    for (const p of ports) (p.side < 0 ? made.ins : made.outs).set(p.op, PAD + p.x + p.width / 2);
    return { ...made, width: size.width + 2 * PAD, height: size.height + 2 * PAD };
  }

  // The places of a kernel's operations, and the lines inside of it.
  settle(node) {
    const x = node.x + PAD + node.pad, y = node.y + PAD + node.pad;
    for (const part of node.parts)
      this.slots.set(`${part.op}:${node.box}`, { op: part.op, x: x + part.x, y: y + part.y, width: part.width, height: part.height });
    if (!node.parts.length) this.slots.set(`-:${node.box}`, { op: NONE, x, y, width: 90, height: ROW });
    node.moved = (name) => node.inner.get(name)?.map(([gx, top, bottom]) => [gx + x, top + y, bottom + y]);
    for (const name of node.inner.keys())
      if (!name.startsWith("in:") && !name.startsWith("out:") && node.inner.get(name)) this.routes.set(`${name}:${node.box}:within`, node.moved(name));
  }

  // The line from one kernel to another, for each of its readers.
  lead({ op, from, to, readers }, route, outer) {
    if (!route) return;
    const way = route.map(([x, top, bottom]) => [x + PAD, top + PAD, bottom + PAD]);
    const start = this.slots.get(`${op}:${outer[from].box}`);
    const begin = outer[from].ports ? outer[from].moved(`out:${op}`) : [[start.x + start.width / 2, start.y + start.height, way[0][1]]];
    for (const m of readers) {
      const slot = this.slots.get(`${m}:${outer[to].box}`);
      const end = outer[to].ports ? outer[to].moved(`in:${op}:${m}`) : [[slot.x + slot.width / 2, way.at(-1)[2], slot.y]];
      if (!begin || !end) continue;
      const whole = [...begin, ...way, ...end];
      whole.mark = markOn(way);
      this.routes.set(`${op}:${m}:${outer[to].box}`, whole);
    }
  }

  // Where an operation stands while it is in this box; undefined when that is in another region.
  slot(op, box) { return this.slots.get(`${op}:${this.run.endsAs[box]}`); }

  // From an operation, read from that box, to a reader in another or the same; undefined where only a bare line leads.
  route(op, home, reader, box) {
    const from = this.run.endsAs[home], to = this.run.endsAs[box];
    if (from !== to && from !== this.run.endsAs[op]) return undefined;
    return this.routes.get(`${op}:${reader}:${to}${from === to ? ":within" : ""}`);
  }
}

// Where a sign on a line is seen best: in the last gap before the reader.
function markOn(route) {
  const [x1, , y1] = route.at(-2), [x2, y2] = route.at(-1);
  return [(x1 + x2) / 2, (y1 + y2) / 2];
}
