// The order within the rows, for few crossings: to and fro by the mean place of the neighbours, then
// neighbours change places where that helps; the best that was seen stays.

const SWEEPS = 14;

function ordered(items) {
  const rows = [], seen = new Set();
  // At first as one comes upon them from above.
  const visit = (item) => {
    if (seen.has(item)) return;
    seen.add(item);
    (rows[item.layer] ??= []).push(item);
    item.down.forEach((l) => visit(l.item));
  };
  [...items].sort((a, b) => a.layer - b.layer).forEach(visit);
  for (let l = 0; l < rows.length; l++) rows[l] ??= [];
  const number = (row) => row.forEach((item, k) => { item.place = k; });
  const fixed = rows.map((row) => row.length > 0 && row.every((item) => item.hint !== undefined));
  rows.forEach((row, l) => { if (fixed[l]) row.sort((a, b) => a.hint - b.hint); number(row); });
  let best = crossings(rows), fewest = rows.map((row) => [...row]), idle = 0;
  for (let round = 0; round < SWEEPS && best > 0 && idle < 4; round++) {
    const down = round % 2 === 0;
    for (let k = 1; k < rows.length; k++) {
      const l = down ? k : rows.length - 1 - k;
      if (fixed[l]) continue;
      sortRow(rows[l], down ? "up" : "down");
      number(rows[l]);
    }
    for (let more = true, round = 0; more && round < 4; round++) {
      more = false;
      rows.forEach((row, l) => { if (!fixed[l] && swapped(row)) more = true; });
    }
    const now = crossings(rows);
    idle = now < best ? 0 : idle + 1;
    if (now < best) [best, fewest] = [now, rows.map((row) => [...row])];
  }
  fewest.forEach(number);
  return fewest;
}

function placeOfEnd(link) { return link.item.place + link.far / (link.item.width + 1); }

function sortRow(row, near) {
  const want = new Map();
  row.forEach((item, k) => {
    const links = item[near];
    want.set(item, links.length ? links.reduce((sum, l) => sum + placeOfEnd(l), 0) / links.length : null);
    if (want.get(item) === null) want.set(item, k ? want.get(row[k - 1]) : -1);
  });
  row.sort((a, b) => want.get(a) - want.get(b) || a.place - b.place);
}

// Neighbours that cross less the other way round change places.
function swapped(row) {
  let any = false;
  for (let k = 0; k + 1 < row.length; k++) {
    const [a, b] = [row[k], row[k + 1]];
    if (crossed(a.up, b.up) + crossed(a.down, b.down) <= crossed(b.up, a.up) + crossed(b.down, a.down)) continue;
    [row[k], row[k + 1]] = [b, a];
    [a.place, b.place] = [b.place, a.place];
    any = true;
  }
  return any;
}

function crossed(left, right) {
  let count = 0;
  for (const a of left) for (const b of right) if (placeOfEnd(a) > placeOfEnd(b)) count++;
  return count;
}

function crossings(rows) {
  let count = 0;
  for (const row of rows) {
    const ends = row.flatMap((item) => [...item.down].sort((a, b) => a.x - b.x || placeOfEnd(a) - placeOfEnd(b)).map(placeOfEnd));
    count += inversions(ends);
  }
  return count;
}

function inversions(list) {
  if (list.length < 2) return 0;
  const middle = list.length >> 1, left = list.slice(0, middle), right = list.slice(middle);
  let count = inversions(left) + inversions(right);
  let a = 0, b = 0;
  for (let k = 0; k < list.length; k++) {
    if (b >= right.length || (a < left.length && left[a] <= right[b])) list[k] = left[a++];
    else { count += left.length - a; list[k] = right[b++]; }
  }
  return count;
}
