// A layered layout: nodes in rows, arrows downward and around what is in their way.
//
// `nodes` have width and height; `edges` are [from, to] and, where an arrow does not start or end in the
// middle, how far from the left. Sets x and y (top left corner) of the nodes and returns the size of the whole,
// and for each edge its route: places [x, top, bottom] that it passes straight down. What closes a circle
// is led as if it went the other way.

function layered(nodes, edges, { gapX = 16, gapY = 34, widest = 1800 } = {}) {
  if (!nodes.length) return { width: 0, height: 0, routes: [] };
  const rank = new Array(nodes.length);
  forward(nodes.length, edges).forEach((n, k) => { rank[n] = k; });
  const going = edges.map(([a, b, ax, bx], n) => [rank[a] < rank[b] ? [a, b, ax, bx] : [b, a, bx, ax], n]).filter(([[a, b]]) => a !== b);
  const layer = layersOf(nodes, going.map(([edge]) => edge), widest, gapX);
  const { items, bends } = withBends(nodes, going.map(([edge]) => edge), layer);
  const rows = ordered(items).filter((row) => row.length);
  const width = across(rows, gapX);
  const height = down(rows, gapY);
  const routes = new Array(edges.length);
  going.forEach(([[a, b, ax, bx], number], n) => {
    const start = items[a], end = items[b];
    const x1 = nodes[a].x + (ax ?? nodes[a].width / 2), x2 = nodes[b].x + (bx ?? nodes[b].width / 2);
    routes[number] = [[x1, nodes[a].y + nodes[a].height, start.bottom],
      ...bends[n].map((bend) => [bend.x + bend.width / 2, bend.top, bend.bottom]), [x2, end.top, nodes[b].y]];
  });
  return { width, height, routes };
}

// Where things stand in their rows: near what they are joined to, and long arrows straight.
function across(rows, gapX) {
  const gap = (a, b) => (a.node ? (b.node ? gapX : 0.7 * gapX) : b.node ? 0.7 * gapX : 0.5 * gapX);
  for (const row of rows) {
    let x = 0;
    row.forEach((item, k) => {
      item.x = k ? x + gap(row[k - 1], item) : 0;
      x = item.x + item.width;
    });
  }
  const pull = (row, sides) => {
    const links = row.map((item) => sides.flatMap((side) => item[side]));
    const weight = links.map((list) => list.reduce((sum, l) => sum + l.weight, 0) || 0.1);
    const want = row.map((item, k) => (links[k].length
      ? links[k].reduce((sum, l) => sum + l.weight * (l.item.x + l.far - l.x), 0) / weight[k] : item.x));
    packed(row, want, weight, gap);
  };
  const upward = [...rows].reverse();
  for (let turn = 0; turn < 6; turn++) {
    rows.forEach((row) => pull(row, ["up"]));
    upward.forEach((row) => pull(row, ["down"]));
  }
  for (let turn = 0; turn < 4; turn++) (turn % 2 ? upward : rows).forEach((row) => pull(row, ["up", "down"]));
  straighten(rows, gap);
  const all = rows.flat(), left = all.reduce((least, item) => Math.min(least, item.x), Infinity);
  let width = 0;
  for (const item of all) {
    item.x -= left;
    if (item.node) item.node.x = item.x;
    width = Math.max(width, item.x + item.width);
  }
  return width;
}

// Long arrows go straight for as long as what stands beside them lets them.
function straighten(rows, gap) {
  const room = (bend) => {
    const row = rows[bend.row], a = row[bend.at - 1], b = row[bend.at + 1];
    return [a ? a.x + a.width + gap(a, bend) : -Infinity, b ? b.x - gap(bend, b) - bend.width : Infinity];
  };
  rows.forEach((row, r) => row.forEach((item, k) => { [item.row, item.at] = [r, k]; }));
  for (const row of rows)
    for (const head of row) {
      if (head.node || head.straight) continue;
      let run = [], least = -Infinity, most = Infinity;
      let want = head.up[0].item.node ? head.up[0].item.x + head.up[0].far - 1 : null;
      const settle = (end) => {
        const mean = run.reduce((sum, bend) => sum + bend.x, 0) / run.length;
        const x = Math.min(most, Math.max(least, want ?? end ?? mean));
        for (const bend of run) [bend.x, bend.straight] = [x, true];
        [run, least, most, want] = [[], -Infinity, Infinity, null];
      };
      for (let bend = head; ;) {
        const [low, high] = room(bend);
        if (run.length && (Math.max(least, low) > Math.min(most, high))) settle(null);
        least = Math.max(least, low);
        most = Math.min(most, high);
        run.push(bend);
        const next = bend.down.find((l) => !l.item.node && !l.item.straight);
        if (!next) {
          const last = bend.down[0];
          settle(last?.item.node ? last.item.x + last.far - 1 : null);
          break;
        }
        bend = next.item;
      }
    }
}

// How far down the rows stand; more room where arrows go far to the side.
function down(rows, gapY) {
  let y = 0;
  rows.forEach((row, k) => {
    const height = greatest(0, row.map((item) => item.node?.height ?? 0));
    for (const item of row) {
      [item.top, item.bottom] = [y, y + height];
      if (item.node) item.node.y = y + (height - item.node.height) / 2;
    }
    const far = greatest(0, row.flatMap((item) => item.down.map((l) => Math.abs(item.x + l.x - l.item.x - l.far))));
    y += height + (k + 1 < rows.length ? gapY + Math.min(1.2 * gapY, far / 16) : 0);
  });
  return y;
}

// Items of a row as near to where they want to be as their order and the gaps allow (weighted least squares).
function packed(row, want, weight, gap) {
  const groups = [], offsets = [];
  let offset = 0;
  row.forEach((item, k) => {
    if (k) offset += row[k - 1].width + gap(row[k - 1], item);
    offsets.push(offset);
    groups.push({ count: 1, weight: weight[k], sum: weight[k] * (want[k] - offset) });
    while (groups.length > 1) {
      const b = groups.at(-1), a = groups.at(-2);
      if (a.sum / a.weight <= b.sum / b.weight) break;
      groups.pop();
      a.count += b.count;
      a.weight += b.weight;
      a.sum += b.sum;
    }
  });
  let k = 0;
  for (const group of groups) for (let n = 0; n < group.count; n++, k++) row[k].x = group.sum / group.weight + offsets[k];
}

// A line along a route: straight down through its places, bent between them.
function along(route) {
  let [x, , y] = route[0], d = `M${round1(x)} ${round1(route[0][1])}V${round1(y)}`;
  for (const [nextX, top, bottom] of route.slice(1)) {
    const middle = (y + top) / 2;
    d += Math.abs(nextX - x) < 0.5 ? `V${round1(bottom)}`
      : `C${round1(x)} ${round1(middle)} ${round1(nextX)} ${round1(middle)} ${round1(nextX)} ${round1(top)}V${round1(bottom)}`;
    [x, y] = [nextX, bottom];
  }
  return d;
}

function round1(number) { return Math.round(number * 10) / 10; }
