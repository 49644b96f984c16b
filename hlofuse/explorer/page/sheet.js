// An outline of the module, drawn.

const HEAD = 34, ROOM_AROUND = 14;

// Sizes of the nodes, and what each says.
function measureOutline(outline) {
  const { run, state } = outline;
  const visit = (node) => {
    delete node.ops;
    if (node.kind === "kernel") {
      node.text = kernelLabel(run, state, node.box);
      const { first, second, third } = node.text, toggle = state.members[node.box].length > 1 ? 24 : 0;
      node.width = Math.max(150, 24 + Math.max(textWidth(first, BOLD) + toggle, textWidth(second), textWidth(third)));
      node.height = THREE_LINES + 4;
      if (!node.opened) return delete node.children;
      node.ops = new Map(state.members[node.box].map((op) => [op, { op, box: node.box, ...labelOf(run, op) }]));
      node.children = [...node.ops.values()];
      return Object.assign(node, { pad: ROOM_AROUND, head: HEAD, least: Math.max(textWidth(first, BOLD) + textWidth(third) + 60, 150) });
    }
    const { kernels, us, bytes } = node;
    const title = `${node.kind === "while" ? "loop " : ""}${node.label}${node.trips ? ` ${node.trips}` : ""}`;
    node.text = {
      title, first: shortName(title, 36), second: countText(kernels, "kernel"),
      third: [us ? kernelTime(node) : "", bytes ? bytesText(bytes) : ""].filter(Boolean).join(" · "),
    };
    node.width = Math.max(170, 52 + textWidth(node.text.first, BOLD), 26 + textWidth(node.text.second), 26 + textWidth(node.text.third));
    node.height = THREE_LINES + 4;
    if (node.opened) {
      Object.assign(node, { pad: ROOM_AROUND, head: HEAD, least: textWidth(node.text.first, BOLD) + textWidth(`${node.text.second} · ${node.text.third}`) + 70 });
      node.children.forEach(visit);
    }
  };
  Object.assign(outline.root, { pad: ROOM_AROUND, head: 0 });
  outline.root.children.forEach(visit);
}

// `marks`: what is chosen, in question and found. Gives the picture, its size, and what is to be seen.
function drawOutline(outline, colours, marks, act, room) {
  const { run, state } = outline;
  measureOutline(outline);
  const flows = outline.flows();
  const size = nested(outline.root, flows, { gapX: 16, gapY: 34, widest: Math.max(600, room.width), room, inside: { widest: Math.max(540, room.width - 80), room: { width: room.width, height: 2 * room.height } } });
  const frames = svg("g", {}), lines = svg("g", { class: "edges" }), titles = svg("g", { class: "titles" }), nodes = svg("g", {}), ruleMarks = svg("g", { class: "marks" }), farNames = svg("g", {}), taken = [];
  const refusals = flows.filter((flow) => flow.decision !== undefined).length;
  for (const flow of flows) {
    const d = flow.route ? along(flow.route) : flow.from.at && flow.to.at && !flow.dead ? curve(rectOf(flow.from), rectOf(flow.to)) : "";
    if (!d) continue;
    const chosen = marks.edge && flow.pairs.some(([a, b]) => a === marks.edge[0] && b === marks.edge[1]);
    const name = ["edge", flow.decision !== undefined && "refused", flow.route?.back && "back", chosen && "chosen", flow.from.op !== undefined && flow.from.box === flow.to.box && "inner"].filter(Boolean).join(" ");
    lines.append(edgeLine(d, name, () => flow.pairs.length && act.edge(...flow.pairs[0], flow.pairs)));
    if (flow.decision !== undefined && refusals <= 60) ruleMarks.append(ruleMark(run, flow.decision, rectOf(flow.from), rectOf(flow.to), act, flow.route && markOn(flow.route), flow.pairs[0], taken));
  }
  // At least the costliest kernel of all steps and runs, so that bars of two pictures can be compared.
  const most = greatest(run.timed ? run.most : run.most / 1e9, visibleNodes(outline.root).map(shareOf));
  for (const node of visibleNodes(outline.root)) {
    if (node.opened) {
      frames.append(borderOf(outline, node, colours, marks, act));
      titles.append(titleOf(node, act));
    }
    if (!node.opened) farNames.append(svg("text", { x: node.at[0] + 8, y: node.at[1] + node.height / 2, class: "far-name", "data-name": node.text.first, "data-figures": node.text.third.split(" · ")[0], "data-room": node.width - 16, "data-height": node.height }));
    if (!node.opened) nodes.append(boxOf(outline, node, colours, marks, act, shareOf(node) / most));
    for (const [op, leaf] of node.ops ?? [])
      nodes.append(opNode(run, state, node.box, op, { x: leaf.at[0], y: leaf.at[1], width: leaf.width, height: leaf.height }, true, marks, act, colours));
  }
  const chosen = marks.focus;
  return { group: svg("g", { class: "overview" }, frames, lines, titles, nodes, ruleMarks, farNames), ...size, focus: chosen && outline.shownFor(chosen.box) && middleOf(placeOfChosen(outline, chosen)) };
}

function placeOfChosen(outline, { box, op }) {
  const node = outline.shownFor(box);
  return node.ops?.get(op) ?? node;
}

const shareOf = (node) => (node.opened ? 0 : node.us || node.bytes / 1e9);
function rectOf(node) { return { x: node.at[0], y: node.at[1], width: node.width, height: node.height }; }
function middleOf(node) { return [node.at[0] + node.width / 2, node.at[1] + node.height / 2]; }

// Frames before what they hold.
function visibleNodes(root) {
  return root.children.flatMap((child) => (child.op !== undefined ? [] : [child, ...(child.opened && child.kind !== "kernel" ? visibleNodes(child) : [])]));
}

// The classes of a box: its colour, and whether it is chosen, ends in what is chosen, is in question, was found.
function classesOf(outline, node, colours, marks) {
  const { run } = outline, single = node.kind === "kernel", classes = [single ? colours.box(node.box, NONE) : colours.group(node.final)];
  const has = (box) => box !== NONE && box !== undefined && (single ? node.box === box : !node.opened && outline.shownFor(box) === node);
  if (single ? node.box === marks.chosen : node.id === marks.group) classes.push("chosen");
  else if (has(marks.chosen)) classes.push("holds-chosen");
  else if (marks.chosen !== NONE && !node.opened && holdsKernel(node, (box) => run.endsAs[box] === run.endsAs[marks.chosen])) classes.push("related");
  if (marks.inQuestion.some(has)) classes.push(marks.kind);
  if (foundIn(outline, node, marks.hits)) classes.push("hit");
  return classes;
}

function holdsKernel(node, test) { return node.kind === "kernel" ? test(node.box) : node.children.some((child) => holdsKernel(child, test)); }

function foundIn(outline, node, hits) {
  if (!hits) return 0;
  if (node.kind !== "kernel") return node.opened ? 0 : node.children.reduce((sum, child) => sum + foundIn(outline, { ...child, opened: false }, hits), 0);
  return (hits.boxes.has(node.box) ? 1 : 0) + (node.opened ? 0 : outline.state.members[node.box].filter((m) => hits.ops.has(m)).length);
}

function toggleOf(node, x, y, act) {
  return svg("g", { class: "toggle", transform: `translate(${x} ${y})`, onclick: (event) => { event.stopPropagation(); act.toggle(node.id, node.opened); } },
    svg("title", {}, node.opened ? "Close" : "Open"), svg("circle", { r: 8 }), svg("path", { d: node.opened ? "M-4 0h8" : "M-4 0h8M0 -4v8" }));
}

function handlers(node, marks, act, outline) {
  const single = node.kind === "kernel", chosen = single ? node.box === marks.chosen : node.id === marks.group;
  const can = !single || outline.state.members[node.box].length > 1;
  const press = pressing(node.id, chosen, () => (single ? act.box(node.box) : act.group(node)), can && (() => act.toggle(node.id, node.opened)));
  return { tabindex: 0, role: "button", "data-id": node.id, "aria-expanded": can ? String(Boolean(node.opened)) : null, "aria-pressed": String(chosen), onclick: press, onkeydown: press };
}

function boxOf(outline, node, colours, marks, act, share) {
  const { title, first, second, third } = node.text, single = node.kind === "kernel", found = foundIn(outline, node, marks.hits);
  const can = !single || outline.state.members[node.box].length > 1, about = `${title}\n${second}\n${third}`, tip = svg("title", {}, about);
  const { kernel } = node.text, { run } = outline;
  return svg("g", {
    onpointerenter: kernel && (async () => { tip.textContent = `${about}\n\n${await act.hlo(run, "kernels", kernel.n)}`; }),
    class: `group ${single ? "kernel" : "fold"} ${classesOf(outline, node, colours, marks).join(" ")}`, "aria-label": `${title}: ${second}, ${third}`,
    "data-box": single ? node.box : null, transform: `translate(${node.at[0]} ${node.at[1]})`, ...handlers(node, marks, act, outline),
  },
  tip,
  !single && svg("rect", { class: "under", x: 5, y: 5, width: node.width, height: node.height, rx: 8 }),
  svg("rect", { class: "frame", width: node.width, height: node.height, rx: single ? 6 : 8 }),
  svg("text", { x: 12, y: 19, class: "name" }, first),
  svg("text", { x: 12, y: 36, class: "words" }, second),
  svg("text", { x: 12, y: 53, class: "words" }, found && !single ? `${third}${third && " · "}${countText(found, "hit")}` : third),
  share > 0.015 && svg("rect", { class: "share", x: 12, y: node.height - 7, width: Math.max(2, (node.width - 24) * share), height: 3, rx: 1.5 }),
  can && toggleOf(node, node.width - 15, 15, act));
}

const loopy = (node) => node.kind === "while" || Boolean(node.trips);
const figuresOf = ({ kind, text }) => (kind === "kernel" ? text.third : [text.second, text.third].filter(Boolean).join(" · "));

function borderOf(outline, node, colours, marks, act) {
  return svg("g", {
    class: `container ${loopy(node) ? "loop" : node.kind} ${node.kind === "kernel" ? "open-kernel" : ""} ${classesOf(outline, node, colours, marks).join(" ")}`,
    "aria-label": `${node.text.title}: ${figuresOf(node)}`, transform: `translate(${node.at[0]} ${node.at[1]})`, ...handlers(node, marks, act, outline),
  },
  svg("title", {}, `${node.text.title}\n${figuresOf(node)}`),
  svg("rect", { class: "frame", width: node.width, height: node.height, rx: 10 }));
}

// Over the lines that lead into the container.
function titleOf(node, act) {
  const { first } = node.text, loop = loopy(node), x = 14 + (loop ? 18 : 0);
  return svg("g", { class: loop ? "loop" : "", transform: `translate(${node.at[0]} ${node.at[1]})` },
    loop && svg("path", { class: "again", d: "M22 12.5a6 6 0 1 0 4.5 3.5m.5 -5v5h-5" }),
    svg("text", { x, y: 22, class: "name", "data-name": first, "data-room": node.width - x, "data-depth": node.depth }, first),
    svg("text", { x: x + textWidth(first, BOLD) + 10, y: 22, class: "words" }, figuresOf(node)),
    toggleOf(node, node.width - 16, 17, act));
}

// Of a container that was clicked: its figures and its costliest kernels.
function groupDetails(app, node) {
  const { title, second } = node.text, timed = node.final.some((k) => k.us !== null);
  const kernels = [...node.final].sort((a, b) => (b.us ?? 0) * b.iterations - (a.us ?? 0) * a.iterations || b.bytes - a.bytes);
  return el("article", { class: "group-details" },
    el("h2", {}, title),
    facts([["kernels", second], ["time", timed ? kernelTime(node) : ""], ["bytes", node.bytes ? bytesText(node.bytes) : ""], ["scope", node.path], ["trip count", node.trips?.slice(2)]]),
    kernels.length ? fold("Slowest kernels", true, el("ul", {}, ...kernels.slice(0, 20).map((k) => el("li", {}, boxLink(app, k.box, k.name), " ",
      el("small", {}, [k.us === null ? bytesText(k.bytes) : kernelTime(k, k.us * k.iterations), iterationsText(k), k.own].filter(Boolean).join(" · ")))))) : null,
    kernels.length > 20 && el("p", { class: "note" }, `… ${numberText(kernels.length - 20)} more`));
}

// Of a line that stands for several: all pairs.
function pairsDetails(app) {
  const shown = app.pairs.slice(0, 40);
  return el("article", { class: "pairs-details" },
    el("h2", {}, countText(app.pairs.length, "edge")),
    el("ul", {}, ...shown.map(([from, to]) => el("li", {}, el("button", { type: "button", class: "link-button", onclick: () => app.showEdge(from, to) },
      `${app.state.shownOf(from)} → ${app.state.shownOf(to)}`)))),
    app.pairs.length > shown.length && el("p", { class: "note" }, `… ${numberText(app.pairs.length - shown.length)} more`));
}

// Where a node was drawn last.
function placeIn(outline, id) {
  const node = outline.nodes.get(id) ?? outline.leafOf.get(Number(id.slice(4)));
  return node?.at && [...node.at];
}
