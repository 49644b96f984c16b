// A region at one step as SVG: operations, fusions around them, and the pair in question.

function centreOf(slot) { return [slot.x + slot.width / 2, slot.y + slot.height / 2]; }

// From the foot of one to the head of the other.
function curve(a, b) {
  const x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
  const bend = Math.max(10, Math.min(60, Math.abs(y2 - y1) / 2));
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

// `marks`: what is chosen and what was found.
function drawRegion(scene, state, decision, colours, marks, act) {
  const { run } = scene, { ops } = run;
  const boxes = boxesIn(scene, state);
  const hulls = svg("g", { class: "hulls" }), halos = svg("g", { class: "halos" }), lines = svg("g", { class: "edges" });
  const nodes = svg("g", { class: "nodes" }), ruleMarks = svg("g", { class: "marks" });
  const tags = svg("g", { class: "tags" }), taken = [];
  const refused = refusedPairs(run, state.at);
  for (const [box, slots] of boxes) {
    const inside = new Set(state.members[box]), inputs = new Set(state.reads[box]);
    const fusion = state.fused[box] > 0;
    const inner = [];
    let from = 0, to = 0;
    const names = new Set();
    for (const [m, slot] of slots) {
      for (const o of new Set(ops.operands[m])) {
        if (!inputs.has(m * ops.count + o)) {
          const other = slots.get(o);
          if (other) inner.push([other, slot, lineOf(scene.route(o, box, m, box), other, slot)]);
          continue;
        }
        const home = state.home[o], start = scene.slot(o, home);
        if (!start || !boxes.has(home)) { from++; names.add(state.shownOf(home)); continue; }
        // Between kernels only: that an input is not fused goes without saying.
        const rule = state.isKernel(home) && state.isKernel(box) ? refused.get(home * run.boxes + box) : undefined;
        const route = scene.route(o, home, m, box);
        const chosen = marks.edge?.[0] === home && marks.edge[1] === box ? " chosen" : "";
        lines.append(edgeLine(lineOf(route, start, slot), `edge${rule === undefined ? "" : " refused"}${chosen}`, () => act.edge(home, box)));
        if (rule !== undefined) ruleMarks.append(ruleMark(run, rule, start, slot, act, route?.mark, [home, box], taken));
      }
      if (state.home[m] === box)
        for (const u of ops.users[m]) if (!inside.has(u) && [...state.holders[u]].some((h) => !boxes.has(h))) to++;
    }
    if (fusion && slots.size) {
      hulls.append(hull(state, box, slots, inner, colours, marks, act));
      tags.append(nameTag(run, state.nameOf(box), slots));
    }
    inner.forEach(([, , d]) => lines.append(svg("path", { d, class: "edge inner" })));
    // What is not in a fusion stands clear of those that run behind it.
    if (!fusion) for (const s of slots.values()) halos.append(svg("rect", { x: s.x - 5, y: s.y - 5, width: s.width + 10, height: s.height + 10, rx: 8 }));
    for (const [m, slot] of slots) nodes.append(opNode(run, state, box, m, slot, fusion, marks, act, colours));
    if (from || to) ruleMarks.append(...stubs([...slots.values()], from, to, [...names]));
  }
  const pair = decision === NONE ? [] : pairMarks(scene, state, decision, act, taken);
  return svg("g", {}, hulls, halos, lines, nodes, ruleMarks, ...pair, tags);
}

// Around what stands between, where a way is known.
function lineOf(route, a, b) { return route ? along(route) : curve(a, b); }

// A line, and a wider one over it that a hand can hit.
function edgeLine(d, name, press) {
  return svg("g", { onclick: (event) => { event.stopPropagation(); press(); } }, svg("path", { d, class: name }), svg("path", { d, class: "reach" }));
}

// The boxes to be seen here and where their operations stand.
function boxesIn(scene, state) {
  const found = new Map();
  const ends = new Set(scene.region.kernels.map((k) => k.box));
  for (const kernel of scene.region.kernels)
    for (const op of kernel.inside)
      for (const box of state.holders[op]) {
        if (!ends.has(scene.run.endsAs[box])) continue;
        const slot = scene.slot(op, box);
        if (!slot) continue;
        if (!found.has(box)) found.set(box, new Map());
        found.get(box).set(op, slot);
      }
  for (const { box } of scene.region.kernels)
    if (box >= scene.run.ops.count && state.alive[box] && !found.has(box)) found.set(box, new Map());
  return found;
}

function hull(state, box, slots, inner, colours, marks, act) {
  const rects = [...slots.values()].map((s) => `M${s.x} ${s.y}h${s.width}v${s.height}h${-s.width}z`).join("");
  const links = spanning(slots, inner).map(([a, b, d]) => {
    const [x1, y1] = centreOf(a), [x2, y2] = centreOf(b);
    return d ? `M${x1} ${y1}${d.replace("M", "L")}L${x2} ${y2}` : `M${x1} ${y1}L${x2} ${y2}`;
  }).join("");
  const chosen = marks.chosen === box && marks.op === NONE ? " chosen" : "";
  return svg("g", { class: `hull ${colours.box(box, NONE)}${chosen}`, "data-box": box, onclick: (event) => { event.stopPropagation(); act.box(box); } },
    svg("title", {}, `${state.shownOf(box)}: ${countText(slots.size, "operation")}`),
    svg("path", { d: links, class: "rim band" }), svg("path", { d: rects, class: "rim" }),
    svg("path", { d: links, class: "body band" }), svg("path", { d: rects, class: "body" }));
}

// The final name; that at fusion where there is room.
function nameTag(run, name, slots) {
  const top = [...slots.values()].reduce((a, b) => (b.y < a.y || (b.y === a.y && b.x < a.x) ? b : a));
  return svg("text", { x: top.x - 6, y: top.y - 14, class: "fusion-name" },
    run.shown(name).length <= 40 ? run.shown(name) : shortName(run.finalOf(name), 34));
}

// Enough lines to hold a kernel together, short ones first; parts that no value connects (siblings) get one, too.
function spanning(slots, inner) {
  const part = new Map([...slots.values()].map((s) => [s, s]));
  const root = (s) => { while (part.get(s) !== s) s = part.get(s); return s; };
  const length = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
  const found = [];
  for (const [a, b, d] of [...inner].sort((one, other) => length(one) - length(other))) {
    if (root(a) === root(b)) continue;
    part.set(root(a), root(b));
    found.push([a, b, d]);
  }
  let last;
  for (const s of slots.values()) {
    if (last && root(last) !== root(s)) {
      found.push([last, s]);
      part.set(root(last), root(s));
    }
    last = s;
  }
  return found;
}

// An operation: what it is called, its shape, the line it comes from; alone also its time.
function opNode(run, state, box, op, slot, inside, marks, act, colours) {
  const label = labelOf(run, op), opcode = run.ops.opcode[op], name = inside ? run.names[op] : state.shownOf(box);
  const chosen = marks.op !== NONE ? marks.op === op && (marks.chosen === box || marks.chosen === op || !state.alive[marks.chosen]) : marks.chosen === box && !inside;
  const classes = ["node", colours.box(box, op), chosen && "chosen", label.quiet && "quiet", (marks.hits?.ops.has(op) || (!inside && marks.hits?.boxes.has(box))) && "hit"];
  const description = `${name}, ${opcode} ${run.ops.shape[op]}${inside ? `, in ${state.shownOf(box)}` : ""}`;
  const press = pressing(`op ${op} ${box}`, chosen, () => act.operation(op, box), null);
  const about = [name, `${opcode} ${run.ops.shape[op]}`, scopeOf(run, op).join("/"), run.ops.own[op]].filter(Boolean).join("\n"), title = svg("title", {}, about);
  const middle = slot.width / 2, first = inside || label.quiet ? label.first : label.first.replace(shortName(run.finalOf(run.names[op]), 24), shortName(run.finalOf(state.nameOf(box)), 24));
  return svg("g", {
    class: classes.filter(Boolean).join(" "), tabindex: 0, role: "button", "aria-label": description, "aria-pressed": String(Boolean(chosen)), "data-op": op, "data-id": `op ${op} ${box}`,
    transform: `translate(${slot.x} ${slot.y})`, onclick: press, onkeydown: press,
    onpointerenter: async () => { title.textContent = `${about}\n\n${await act.hlo(run, "operations", op)}`; },
  },
  title,
  svg("rect", { width: slot.width, height: slot.height, rx: label.quiet ? 12 : 5 }),
  svg("text", { x: middle, y: label.second ? 17 : slot.height / 2 + 4, class: label.quiet ? "words" : "name" }, first),
  label.second && svg("text", { x: middle, y: 32, class: "words" }, inside || !label.us ? label.second : `${label.second} · ${label.us}`));
}

function stubs(slots, from, to, names) {
  if (!slots.length) return [];
  const out = [];
  const top = slots.reduce((a, b) => (b.y < a.y ? b : a)), foot = slots.reduce((a, b) => (b.y > a.y ? b : a));
  if (from) {
    // At the right: the name is at the left.
    const x = top.x + top.width - 8;
    out.push(svg("path", { class: "stub", d: `M${x} ${top.y - 9}v7m-3 -4l3 4l3 -4` },
      svg("title", {}, `reads from other parts: ${names.join(", ")}`)));
  }
  if (to) {
    const [x] = centreOf(foot), y = foot.y + foot.height;
    out.push(svg("path", { class: "stub", d: `M${x} ${y + 2}v7m-3 -4l3 4l3 -4` },
      svg("title", {}, "read by other parts")));
  }
  return out;
}

// The last refusal so far of each pair that has not been fused since.
function refusedPairs(run, at) {
  if (!run.refusals) {
    run.refusals = [];
    const d = run.decisions;
    for (let n = 0; n < d.count; n++)
      if (d.kind[n] === "ineligible" && d.producer[n] !== NONE && d.consumer[n] !== NONE) run.refusals.push(n);
  }
  const found = new Map(), d = run.decisions;
  for (const n of run.refusals) {
    if (n >= at) break;
    found.set(d.producer[n] * run.boxes + d.consumer[n], n);
  }
  return found;
}

// The place, or one next to it where no other mark is.
function freePlace([x, y], width, taken) {
  const isFree = ([px, py]) => taken.every(([tx, ty, w]) => Math.abs(px - tx) >= (width + w) / 2 + 2 || Math.abs(py - ty) >= 20);
  const steps = [0, 1, -1, 2, -2, 3, -3, 4, -4];
  const tried = [0, 20, -20, 40].flatMap((dy) => steps.map((k) => [x + k * (width + 3), y + dy]));
  const found = tried.find(isFree) ?? [x, y];
  taken.push([...found, width]);
  return found;
}

// The rule that keeps a pair apart.
function ruleMark(run, decision, a, b, act, place, pair, taken) {
  const [x1] = centreOf(a), [x2] = centreOf(b), foot = a.y + a.height;
  const words = run.decisions.rule[decision], width = 14 + textWidth(words, BOLD);
  const [x, y] = freePlace(place ?? [x1 + 0.12 * (x2 - x1), foot + Math.max(12, 0.2 * (b.y - foot))], width, taken);
  return svg("g", { class: "rule-mark", transform: `translate(${x} ${y})`, onclick: (event) => { event.stopPropagation(); act.rule(decision, pair); } },
    svg("title", {}, run.decisions.reason[decision]),
    svg("rect", { x: -width / 2, y: -9, width, height: 18, rx: 9 }), svg("text", { y: 4 }, words));
}

function pairMarks(scene, state, n, act, taken) {
  const { run } = scene, d = run.decisions, kind = d.kind[n];
  const producer = d.producer[n], consumers = kind === "priority" ? d.others[n] : [d.consumer[n]];
  const group = svg("g", { class: `pair ${kind}` });
  if (producer === NONE) return [group];
  const moved = new Set(state.members[producer]);
  const holder = (op, box) => scene.slot(op, state.alive[producer] ? producer : box);
  for (const box of consumers) {
    if (box === NONE) continue;
    const links = [];
    for (const m of state.members[box]) {
      if (kind === "fuse" && moved.has(m)) continue;
      const end = scene.slot(m, box);
      for (const o of new Set(run.ops.operands[m])) {
        const start = moved.has(o) ? (kind === "fuse" ? scene.slot(o, box) : holder(o, box)) : undefined;
        if (start && end) links.push([start, end, scene.route(o, kind === "fuse" || !state.alive[producer] ? box : producer, m, box)]);
      }
    }
    const rings = [...moved].map((o) => (kind === "fuse" ? scene.slot(o, box) : holder(o, box))).filter(Boolean);
    const ends = state.members[box].filter((m) => kind !== "fuse" || !moved.has(m))
      .map((m) => scene.slot(m, box)).filter(Boolean);
    if (!links.length && rings.length && ends.length) links.push([rings.at(-1), ends[0]]);
    links.forEach(([a, b, route]) => group.append(svg("path", { d: lineOf(route, a, b), class: "link" })));
    rings.forEach((s) => group.append(ring(s, "from")));
    ends.forEach((s) => group.append(ring(s, "to")));
    if (!ends.length && rings.length) group.append(...ghost(scene, state, box, rings.at(-1), act));
    if (kind === "ineligible" && links.length) {
      const [a, b, route] = links[0];
      group.append(ruleMark(run, n, a, b, act, route?.mark, [producer, box], taken));
    }
  }
  if (consumers.every((c) => c === NONE))
    [...moved].map((o) => holder(o, producer)).filter(Boolean).forEach((s) => group.append(ring(s, "from")));
  return [group];
}

function ring(slot, role) {
  return svg("rect", {
    class: `ring ${role}`, x: slot.x - 3, y: slot.y - 3, width: slot.width + 6, height: slot.height + 6, rx: 6,
  });
}

// The other end of an edge that leaves the region.
function ghost(scene, state, box, from, act) {
  const name = shortName(scene.run.finalOf(state.nameOf(box)), 26), width = 20 + textWidth(name);
  const slot = { x: from.x + from.width / 2 - width / 2, y: from.y + from.height + 46, width, height: ONE_LINE };
  return [svg("path", { d: curve(from, slot), class: "link" }),
    svg("g", { class: "ghost", transform: `translate(${slot.x} ${slot.y})`, onclick: (event) => { event.stopPropagation(); act.leave(box); } },
      svg("title", {}, "in another part of the module"),
      svg("rect", { width, height: ONE_LINE, rx: 12 }), svg("text", { x: width / 2, y: ONE_LINE / 2 + 4 }, name))];
}

// Where a box is to be seen; undefined if it is not here.
function placeOf(scene, state, box) {
  const slots = (state.members[box] ?? []).map((m) => scene.slot(m, box)).filter(Boolean);
  if (!slots.length) return undefined;
  const middle = slots.map(centreOf);
  return [0, 1].map((k) => (greatest(-Infinity, middle.map((c) => c[k])) - greatest(-Infinity, middle.map((c) => -c[k]))) / 2);
}

// Where to begin where not all can be shown: the kernel with most time.
function beginOf(scene, state) {
  const cost = ({ box }) => { const k = kernelOf(scene.run, box); return k ? (k.us ?? 0) * k.iterations + k.bytes / 1e9 : 0; };
  const [first] = [...scene.region.kernels].sort((a, b) => cost(b) - cost(a));
  const place = first && placeOf(scene, state, first.box), slots = first ? (state.members[first.box] ?? []).map((m) => scene.slot(m, first.box)).filter(Boolean) : [];
  return place && [place[0], -greatest(-Infinity, slots.map((s) => -s.y))];
}

// Where the producer of a decision is to be seen.
function focusOf(scene, state, n) {
  const { producer, consumer } = scene.run.decisions;
  const moved = new Set(state.members[producer[n]] ?? []);
  if (scene.run.decisions.kind[n] === "fuse" && consumer[n] !== NONE) {
    const slots = [...moved].map((m) => scene.slot(m, consumer[n])).filter(Boolean);
    if (slots.length) return centreOf(slots.at(-1));
  }
  return producer[n] === NONE ? undefined : placeOf(scene, state, producer[n]);
}
