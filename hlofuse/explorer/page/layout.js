// A layered layout: nodes in rows, arrows downward and around what is in their way.
//
// `nodes` have width and height; `edges` are [from, to] and, where an arrow does not start or end in the
// middle, how far from the left. Sets x and y (top left corner) of the nodes and returns the size of the whole,
// and for each edge its route: places [x, top, bottom] that it passes straight down. What closes a circle
// is led as if it went the other way, and its route says so (`back`). With a `room` the rows go on in a second
// and further columns where that shows them larger; a fourth value of a place is then [foot, gutter, head]: how
// the line gets from there to the top of the next column.

// On screen a text is never smaller than 11 of 12 when a picture opens, and never larger than this.
const READABLE = 0.917, LARGEST = 1.3, LANE = 6;

function layered(nodes, edges, { gapX = 16, gapY = 34, widest = 1800, room } = {}) {
  if (!nodes.length) return { width: 0, height: 0, routes: [] };
  const rank = new Array(nodes.length);
  forward(nodes.length, edges).forEach((n, k) => { rank[n] = k; });
  const going = edges.map(([a, b, ax, bx], n) => [rank[a] < rank[b] ? [a, b, ax, bx] : [b, a, bx, ax], n]).filter(([[a, b]]) => a !== b);
  const layer = layersOf(nodes, going.map(([edge]) => edge), widest, gapX);
  const { items, bends } = withBends(nodes, going.map(([edge]) => edge), layer);
  const rows = ordered(items).filter((row) => row.length);
  let width = across(rows, gapX), height = down(rows, gapY);
  const columns = room ? columnsFor(rows, height, room) : [];
  if (columns.length > 1) [width, height] = wrap(rows, columns);
  const routes = new Array(edges.length);
  going.forEach(([[a, b, ax, bx], number], n) => {
    const start = items[a], end = items[b];
    const x1 = nodes[a].x + (ax ?? nodes[a].width / 2), x2 = nodes[b].x + (bx ?? nodes[b].width / 2);
    const route = routes[number] = [[x1, nodes[a].y + nodes[a].height, start.bottom],
      ...bends[n].map((bend) => [bend.x + bend.width / 2, bend.top, bend.bottom]), [x2, end.top, nodes[b].y]];
    route.back = edges[number][0] !== a;
    [start, ...bends[n]].forEach((item, k, passed) => {
      if ((passed[k + 1] ?? end).column !== item.column) route[k] = [...route[k], item.detours.get(k ? 1 : ax ?? nodes[a].width / 2)];
    });
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
  // Links and their weights stay the same, however often they pull.
  const pulling = (links) => rows.map((row) => {
    const own = row.map(links), weight = own.map((list) => list.reduce((sum, l) => sum + l.weight, 0) || 0.1);
    return () => packed(row, row.map((item, k) => {
      if (!own[k].length) return item.x;
      let sum = 0;
      for (const l of own[k]) sum += l.weight * (l.item.x + l.far - l.x);
      return sum / weight[k];
    }), weight, gap);
  });
  const up = pulling((item) => item.up), down = pulling((item) => item.down).reverse(), both = pulling((item) => [...item.up, ...item.down]);
  for (let round = 0; round < 6; round++) for (const pull of [...up, ...down]) pull();
  for (let round = 0; round < 4; round++) for (const pull of round % 2 ? [...both].reverse() : both) pull();
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

// The rows where columns begin, for the picture to be seen as large as can be in a room.
function columnsFor(rows, height, room) {
  let best = [0], bestScore = -1;
  for (let n = 1; n <= Math.min(10, rows.length); n++) {
    const starts = [0], most = (height / n) * 1.04;
    rows.forEach((row, k) => {
      if (k && row[0].bottom - rows[starts.at(-1)][0].top > most) starts.push(k);
    });
    const wide = starts.reduce((sum, from, i) => sum + extent(rows.slice(from, starts[i + 1])).width + (i ? gutterOf(rows, from) : 0), 0);
    const tall = greatest(0, starts.map((from, i) => rows[(starts[i + 1] ?? rows.length) - 1][0].bottom - rows[from][0].top)) + (n > 1 ? 60 : 0);
    const score = Math.min(room.width / wide, room.height / tall, LARGEST) * 0.94 ** (n - 1);
    if (score > bestScore) [best, bestScore] = [starts, score];
  }
  return best;
}

function extent(rows) {
  let left = Infinity, right = -Infinity;
  for (const row of rows) for (const item of row) { left = Math.min(left, item.x); right = Math.max(right, item.x + item.width); }
  return { left, right, width: right - left };
}

// The lines that leave the row before this one, each end once, from left to right.
function lanesBefore(rows, from) {
  const found = [];
  for (const item of rows[from - 1]) for (const x of new Set(item.down.map((l) => l.x))) found.push([item, x]);
  return found.sort((a, b) => a[0].x + a[1] - b[0].x - b[1]);
}

function gutterOf(rows, from) { return 30 + LANE * lanesBefore(rows, from).length; }

// Puts the rows into columns. Lines go below a column, up between the two and down into the next.
function wrap(rows, starts) {
  const lanes = starts.map((from) => (from ? lanesBefore(rows, from) : []));
  const head = 10 + LANE * greatest(0, lanes.map((list) => list.length));
  let x = 0, height = 0;
  starts.forEach((from, column) => {
    const part = rows.slice(from, starts[column + 1]), { left, width } = extent(part);
    const foot = column ? rows[from - 1][0].bottom : 0, count = lanes[column].length;
    const gutter = x + 15;
    if (column) x += gutterOf(rows, from);
    const dy = head - part[0][0].top;
    lanes[column].forEach(([item, at], j) => {
      item.detours ??= new Map();
      item.detours.set(at, [foot + 10 + LANE * (count - 1 - j), gutter + LANE * (count - 1 - j), head - 10 - LANE * j]);
      height = Math.max(height, foot + 10 + LANE * count);
    });
    for (const item of part.flat()) {
      item.column = column;
      item.x += x - left;
      item.top += dy;
      item.bottom += dy;
      if (item.node) [item.node.x, item.node.y] = [item.x, item.node.y + dy];
    }
    x += width;
    height = Math.max(height, part.at(-1)[0].bottom);
  });
  return [x, height];
}

// A line along a route: straight down through its places, bent between them.
function along(route) {
  let [x, , y, detour] = route[0], d = `M${round1(x)} ${round1(route[0][1])}V${round1(y)}`;
  for (const [nextX, top, bottom, nextDetour] of route.slice(1)) {
    const middle = (y + top) / 2;
    if (detour) {
      const [foot, gutter, head] = detour;
      d += cornered([[x, y], [x, foot], [gutter, foot], [gutter, head], [nextX, head], [nextX, top]]) + `V${round1(bottom)}`;
    } else d += Math.abs(nextX - x) < 0.5 ? `V${round1(bottom)}`
      : `C${round1(x)} ${round1(middle)} ${round1(nextX)} ${round1(middle)} ${round1(nextX)} ${round1(top)}V${round1(bottom)}`;
    [x, y, detour] = [nextX, bottom, nextDetour];
  }
  return d;
}

// Straight lines from corner to corner, rounded.
function cornered(points) {
  let d = "";
  for (let k = 1; k + 1 < points.length; k++) {
    const [a, b, c] = [points[k - 1], points[k], points[k + 1]];
    const toward = (p) => { const far = Math.hypot(p[0] - b[0], p[1] - b[1]) || 1, by = Math.min(6, far / 2) / far; return [b[0] + (p[0] - b[0]) * by, b[1] + (p[1] - b[1]) * by].map(round1); };
    d += `L${toward(a).join(" ")}Q${b.map(round1).join(" ")} ${toward(c).join(" ")}`;
  }
  return `${d}L${points.at(-1).map(round1).join(" ")}`;
}

// A route somewhere else.
function shifted(route, dx, dy) {
  return route.map(([x, top, bottom, detour]) => [x + dx, top + dy, bottom + dy, detour && [detour[0] + dy, detour[1] + dx, detour[2] + dy]]);
}

// Where a sign on a line is seen best: in the last gap before the reader.
function markOn(route) {
  const [x1, , y1, detour] = route.at(-2), [x2, y2] = route.at(-1);
  return detour ? [x2, (detour[2] + y2) / 2] : [(x1 + x2) / 2, (y1 + y2) / 2];
}

function round1(number) { return Math.round(number * 10) / 10; }
