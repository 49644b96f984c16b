// Where everything of a region stands. The places are those of the final kernels, so that a fusion grows
// into room that is kept for it and nothing moves from step to step.

const ROW = 24, PAD = 12;

class Scene {
  constructor(run, regionNumber) {
    this.run = run;
    this.number = regionNumber;
    this.region = run.regions[regionNumber];
    this.slots = new Map();  // "operation:final box" to its place
    const outer = this.region.kernels.map((kernel) => this.inside(kernel));
    const index = new Map(outer.map((node, n) => [node.box, n]));
    const edges = [];
    outer.forEach((node, n) => {
      const from = new Set();
      for (const m of node.inside)
        for (const o of run.ops.operands[m]) {
          const home = index.get(run.endsAs[o]);
          if (home !== undefined && home !== n && !node.members.has(o)) from.add(home);
        }
      from.forEach((a) => edges.push([a, n]));
    });
    const size = layered(outer, edges, { gapX: 22, gapY: 26, widest: 1500 });
    this.width = size.width + 2 * PAD;
    this.height = size.height + 2 * PAD;
    for (const node of outer)
      for (const part of node.parts) {
        const slot = { op: part.op, x: node.x + part.x + PAD * 2, y: node.y + part.y + PAD * 2, width: part.width, height: part.height };
        this.slots.set(`${part.op}:${node.box}`, slot);
      }
    outer.filter((node) => !node.parts.length).forEach((node) =>
      this.slots.set(`-:${node.box}`, { op: NONE, x: node.x + PAD * 2, y: node.y + PAD * 2, width: 90, height: ROW }));
  }

  inside(kernel) {
    const { ops, names } = this.run;
    const parts = kernel.inside.map((op) => {
      const quiet = ops.opcode[op] === "parameter" || ops.opcode[op] === "constant";
      return { op, width: 16 + 6.4 * Math.min(shortName(names[op], 22).length, 22), height: quiet ? ROW - 6 : ROW };
    });
    const index = new Map(kernel.inside.map((op, n) => [op, n]));
    const edges = [];
    kernel.inside.forEach((op, n) => ops.operands[op].forEach((o) => {
      if (index.has(o)) edges.push([index.get(o), n]);
    }));
    const size = parts.length ? layered(parts, edges, { gapX: 14, gapY: 14, widest: 900 }) : { width: 90, height: ROW };
    return {
      box: kernel.box, inside: kernel.inside, members: new Set(kernel.inside), parts,
      width: size.width + 2 * PAD, height: size.height + 2 * PAD,
    };
  }

  // Where an operation stands while it is in this box; undefined when that is in another region.
  slot(op, box) { return this.slots.get(`${op}:${this.run.endsAs[box]}`); }
}
