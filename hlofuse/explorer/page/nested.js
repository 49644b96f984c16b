// A layout of boxes within boxes. A node is { width, height } or, with `children` that are not folded (`opened`), a
// container around them that has `pad` at its sides and `head` above; `flows` are pairs of nodes that a line leads from and to.
//
// Each container is laid out by itself. What comes into it and goes out of it gets a port at its rim, so that a
// line from deep inside one container to deep inside another is led around what is in its way everywhere.
// Nodes get their place on the whole (`at`), and flows their route.

function nested(root, flows, options = {}) {
  const containers = [];
  const visit = (node, parent, depth) => {
    Object.assign(node, { parent, depth, ins: new Map(), outs: new Map() });
    if (!node.children || node.opened === false) return;
    containers.push(node);
    Object.assign(node, { inner: new Map(), entries: new Map(), exits: new Map() });
    node.children.forEach((child, n) => { child.place = n; visit(child, node, depth + 1); });
  };
  visit(root, null, 0);
  containers.reverse();  // those inside first
  flows.forEach((flow) => connect(flow));
  const arrange = (hinted) => containers.forEach((c) => layContainer(c, c === root ? options : { ...options, ...options.inside }, hinted));
  arrange(false);
  settleNested(root, 0, 0);
  // Once to see who stands where; then ports are put in that order.
  if (containers.some((c) => c.entries.size || c.exits.size)) {
    arrange(true);
    settleNested(root, 0, 0);
  }
  for (const flow of flows) flow.route = routeOf(flow);
  return { width: root.width, height: root.height };
}

// Notes a flow in the container that holds both its ends, and in each that it enters or leaves.
function connect(flow) {
  const ends = [flow.from, flow.to];
  let [a, b] = ends;
  flow.up = [];
  flow.down = [];
  while (a.depth > b.depth) { flow.up.push(a); a = a.parent; }
  while (b.depth > a.depth) { flow.down.push(b); b = b.parent; }
  flow.dead = a === b;  // to or from what is around it
  while (a.parent !== b.parent) {
    flow.up.push(a);
    flow.down.push(b);
    [a, b] = [a.parent, b.parent];
  }
  if (flow.dead) return;
  Object.assign(flow, { a, b });
  const s = flow.from, note = (map, key, make) => { if (!map.has(key)) map.set(key, make()); return map.get(key); };
  for (const node of flow.up) note(node.parent.exits, s, () => ({ child: node, hints: [], route: null })).hints.push(flow.to);
  for (const node of flow.down) {
    const entry = note(node.parent.entries, s, () => ({ children: new Map(), hints: [s] }));
    note(entry.children, node, () => ({ route: null }));
  }
  note(a.parent.inner, `${a.place}:${b.place}:${a === s ? "" : s.at0 ??= ++connect.count}`, () => ({ a, b, s, route: null }));
}
connect.count = 0;

function layContainer(c, { gapX, gapY, widest, room }, hinted) {
  const nodes = [...c.children], edges = [], done = [];
  const edge = (line, from, to, x1, x2) => { edges.push([from, to, x1, x2]); done.push(line); };
  for (const line of c.inner.values()) edge(line, line.a.place, line.b.place, line.a.outs.get(line.s), line.b.ins.get(line.s));
  const port = (hints, side) => {
    const hint = hinted ? hints.reduce((sum, n) => sum + n.at[0] + n.width / 2, 0) / hints.length : undefined;
    nodes.push({ side, width: 2, height: 0, hint });
    return nodes.length - 1;
  };
  const ports = [];
  for (const [s, entry] of c.entries) {
    const at = port(entry.hints, -1);
    ports.push([c.ins, s, at]);
    for (const [child, line] of entry.children) edge(line, at, child.place, undefined, child.ins.get(s));
  }
  for (const [s, line] of c.exits) {
    const at = port(line.hints, 1);
    ports.push([c.outs, s, at]);
    edge(line, line.child.place, at, line.child.outs.get(s));
  }
  const size = layered(nodes, edges, { gapX: c.gapX ?? gapX, gapY: c.gapY ?? gapY, widest, room: c.parent && c.fixed ? undefined : room });
  done.forEach((line, n) => { line.route = size.routes[n]; });
  const extra = Math.max(0, (c.least ?? 0) - size.width - 2 * c.pad) / 2;
  c.inset = [c.pad + extra, c.pad + c.head];
  for (const [map, s, at] of ports) map.set(s, c.inset[0] + nodes[at].x + 1);
  c.width = size.width + 2 * c.inset[0];
  c.height = size.height + 2 * c.pad + c.head;
}

function settleNested(node, x, y) {
  node.at = [x, y];
  for (const child of (node.opened !== false && node.children) || []) settleNested(child, x + node.inset[0] + child.x, y + node.inset[1] + child.y);
}

// From the foot of one node to the head of the other, through all that is between; undefined where none is known.
function routeOf(flow) {
  if (flow.dead) return undefined;
  const { a, b, from: s } = flow, on = (container, route) => route && shifted(route, container.at[0] + container.inset[0], container.at[1] + container.inset[1]);
  const across = a.parent.inner.get(`${a.place}:${b.place}:${a === s ? "" : s.at0}`).route;
  if (!across) return undefined;
  const path = on(a.parent, across);
  path.back = across.back;
  // What goes round in a circle is led from container to container only.
  if (across.back) return path;
  const parts = [...flow.up.map((node) => on(node.parent, node.parent.exits.get(s).route)), path,
    ...[...flow.down].reverse().map((node) => on(node.parent, node.parent.entries.get(s).children.get(node).route))];
  if (parts.some((part) => !part)) return undefined;
  const whole = parts.flat();
  whole.mark = markOn(path);
  return whole;
}
