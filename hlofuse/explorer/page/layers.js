// Which row each node of a picture stands in, and the places that long arrows take in the rows between.

// The row of each node: arrows go down, as short as can be had cheaply, and no row is wider than `widest`.
// `side` of a node is -1 for above all others, 1 for below.
function layersOf(nodes, edges, widest, gapX) {
  const count = nodes.length;
  const above = Array.from({ length: count }, () => []), below = Array.from({ length: count }, () => []);
  for (const [a, b] of edges) { above[b].push(a); below[a].push(b); }
  const order = forward(count, edges), layer = new Array(count).fill(0);
  for (const n of order) for (const a of above[n]) layer[n] = Math.max(layer[n], layer[a] + 1);
  // As near to most of its neighbours as they allow.
  const settle = (n) => {
    const low = greatest(-Infinity, above[n].map((a) => layer[a])) + 1;
    const high = -greatest(-Infinity, below[n].map((b) => -layer[b])) - 1;
    if (below[n].length > above[n].length) layer[n] = high;
    else if (above[n].length > below[n].length) layer[n] = low;
  };
  for (let round = 0; round < 4; round++) {
    [...order].reverse().forEach(settle);
    order.forEach(settle);
  }
  const inner = order.filter((n) => !nodes[n].side);
  const rows = new Map();
  for (const n of inner) rows.set(layer[n], [...(rows.get(layer[n]) ?? []), n]);
  let next = 1;
  for (const l of [...rows.keys()].sort((a, b) => a - b)) {
    // A row wider than can be looked at goes on in the next one; what reads nothing goes first.
    const row = rows.get(l).sort((a, b) => (above[a].length > 0) - (above[b].length > 0));
    let width = 0;
    for (const n of row) {
      if (width && width + nodes[n].width > widest) { next++; width = 0; }
      layer[n] = next;
      width += nodes[n].width + gapX;
    }
    next++;
  }
  nodes.forEach((node, n) => { if (node.side) layer[n] = node.side < 0 ? 0 : next; });
  return layer;
}

// An order in which arrows go forward; in a circle the first of its nodes goes first.
function forward(count, edges) {
  const waits = new Array(count).fill(0), after = Array.from({ length: count }, () => []);
  for (const [a, b] of edges) {
    if (a === b) continue;
    waits[b]++;
    after[a].push(b);
  }
  const order = [], done = new Array(count).fill(false), ready = [];
  for (let n = count - 1; n >= 0; n--) if (!waits[n]) ready.push(n);
  for (let next = 0; order.length < count;) {
    if (!ready.length) {
      while (done[next]) next++;
      ready.push(next);
    }
    const n = ready.pop();
    if (done[n]) continue;
    done[n] = true;
    order.push(n);
    for (const b of after[n]) if (--waits[b] === 0) ready.push(b);
  }
  return order;
}

// What stands in the rows: the nodes, and for each arrow a bend in every row that it passes. Arrows from one
// end share their bends, for as long as they go together. Gives the bends of each arrow.
function withBends(nodes, edges, layer) {
  const items = nodes.map((node, n) => ({ node, width: node.width, layer: layer[n], up: [], down: [], hint: node.hint }));
  const shared = new Map();
  const join = (a, ax, b, bx) => {
    if (a.down.some((l) => l.item === b && l.x === ax && l.far === bx)) return;
    const weight = a.node && b.node ? 1 : a.node || b.node ? 2 : 8;
    a.down.push({ item: b, x: ax, far: bx, weight });
    b.up.push({ item: a, x: bx, far: ax, weight });
  };
  const bends = edges.map(([a, b, ax = nodes[a].width / 2, bx = nodes[b].width / 2]) => {
    let last = items[a], lastX = ax;
    const path = [];
    for (let l = layer[a] + 1; l < layer[b]; l++) {
      const key = `${a}/${ax}/${l}`;
      let bend = shared.get(key);
      if (!bend) {
        bend = { node: null, width: 2, layer: l, up: [], down: [] };
        shared.set(key, bend);
        items.push(bend);
        join(last, lastX, bend, 1);
      }
      path.push(bend);
      [last, lastX] = [bend, 1];
    }
    join(last, lastX, items[b], bx);
    return path;
  });
  return { items, bends };
}
