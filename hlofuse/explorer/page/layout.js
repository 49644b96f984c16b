// A layered layout: nodes in rows, arrows downward, neighbours near each other.
//
// `nodes` have width and height. Arrows that close a circle are left out of account. Sets x and y (top left corner) and returns the size of the whole.

function layered(nodes, edges, { gapX = 16, gapY = 34, widest = 1800 } = {}) {
  const count = nodes.length;
  const above = Array.from({ length: count }, () => []), below = Array.from({ length: count }, () => []);
  const order = forward(count, edges), rank = new Array(count);
  order.forEach((n, k) => { rank[n] = k; });
  for (const [a, b] of edges) {
    if (rank[a] >= rank[b]) continue;
    above[b].push(a);
    below[a].push(b);
  }
  const layer = new Array(count).fill(0);
  for (const n of order) for (const a of above[n]) layer[n] = Math.max(layer[n], layer[a] + 1);
  // What reads nothing stands just above what reads it.
  for (const n of [...order].reverse())
    if (!above[n].length && below[n].length) layer[n] = Math.min(...below[n].map((b) => layer[b])) - 1;
  const lowest = Math.min(0, ...layer);
  const rows = [];
  layer.forEach((l, n) => (rows[l - lowest] ??= []).push(n));
  const place = new Array(count).fill(0);
  const spread = (row) => row.forEach((n, k) => { place[n] = (k + 0.5) / row.length; });
  for (let l = 0; l < rows.length; l++) rows[l] ? spread(rows[l]) : (rows[l] = []);
  const sweep = (row, near) => {
    const want = new Map(row.map((n) =>
      [n, near[n].length ? near[n].reduce((sum, m) => sum + place[m], 0) / near[n].length : place[n]]));
    row.sort((a, b) => want.get(a) - want.get(b) || a - b);
    spread(row);
  };
  for (let turn = 0; turn < 6; turn++) {
    rows.forEach((row) => sweep(row, above));
    [...rows].reverse().forEach((row) => sweep(row, below));
  }
  // A row wider than can be looked at goes on in the next line.
  const lines = [];
  for (const row of rows) {
    let line = [], width = 0;
    for (const n of row) {
      if (line.length && width + nodes[n].width > widest) {
        lines.push(line);
        [line, width] = [[], 0];
      }
      line.push(n);
      width += nodes[n].width + gapX;
    }
    if (line.length) lines.push(line);
  }
  let y = 0;
  for (const line of lines) {
    let x = 0;
    for (const n of line) {
      nodes[n].x = x;
      x += nodes[n].width + gapX;
    }
    const height = Math.max(...line.map((n) => nodes[n].height));
    for (const n of line) nodes[n].y = y + (height - nodes[n].height) / 2;
    y += height + gapY;
  }
  const centre = (n) => nodes[n].x + nodes[n].width / 2;
  const pull = (line, near) => {
    const want = line.map((n) => {
      if (!near[n].length) return nodes[n].x;
      return near[n].reduce((sum, m) => sum + centre(m), 0) / near[n].length - nodes[n].width / 2;
    });
    packed(line.map((n) => nodes[n]), want, gapX);
  };
  for (let turn = 0; turn < 4; turn++) {
    lines.forEach((line) => pull(line, above));
    [...lines].reverse().forEach((line) => pull(line, below));
  }
  lines.forEach((line) => pull(line, above));
  const left = Math.min(...nodes.map((n) => n.x), Infinity);
  let width = 0;
  for (const n of nodes) {
    n.x -= left;
    width = Math.max(width, n.x + n.width);
  }
  return { width, height: Math.max(0, y - gapY) };
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

// Nodes of a line as near to where they want to be as their order and the gaps allow (least squares).
function packed(line, want, gap) {
  const groups = [];
  let offset = 0;
  line.forEach((node, k) => {
    groups.push({ count: 1, sum: want[k] - offset });
    offset += node.width + gap;
    while (groups.length > 1) {
      const b = groups.at(-1), a = groups.at(-2);
      if (a.sum / a.count <= b.sum / b.count) break;
      groups.pop();
      a.count += b.count;
      a.sum += b.sum;
    }
  });
  offset = 0;
  let k = 0;
  for (const group of groups) {
    const start = group.sum / group.count;
    for (let n = 0; n < group.count; n++, k++) {
      line[k].x = start + offset;
      offset += line[k].width + gap;
    }
  }
}
