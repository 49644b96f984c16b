// The texts of boxes, and the room that they take.

const FAMILY = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const BOLD = `600 12px ${FAMILY}`, PLAIN = `12px ${FAMILY}`;
const ONE_LINE = 24, TWO_LINES = 40, THREE_LINES = 64;

const widths = new Map();

// The sum of its letters: measuring each text anew would take most of the time of a step.
function textWidth(text, font = PLAIN) {
  if (!widths.has(font)) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = font;
    widths.set(font, { pen, letters: new Map() });
  }
  const { pen, letters } = widths.get(font);
  let width = 0;
  for (const letter of text) {
    if (!letters.has(letter)) letters.set(letter, pen.measureText(letter).width);
    width += letters.get(letter);
  }
  return width;
}

// As much of a name as fits; empty for less than five letters.
function fitText(name, room, font) {
  let letters = name.length;
  while (letters >= 5 && textWidth(shortName(name, letters), font) > room) letters--;
  return letters < Math.min(5, name.length) ? "" : shortName(name, letters);
}

// Without its layout; of a tuple the first part and how many there are.
function shapeText(shape) {
  const parts = shape.replace(/\/\*.*?\*\//g, "").replace(/\{[^}]*\}/g, "").replace(/^\((.*)\)$/, "$1").match(/\w+\[[^\]]*\]/g) ?? [];
  if (parts.length > 1) return `${shortName(parts[0], 18)} + ${parts.length - 1}`;
  return shortName(parts[0] ?? shape, 22);
}

// `file:line`; the line only where the whole program is one file.
function lineText(run, source) {
  if (run.oneFile === undefined) run.oneFile = new Set(run.ops.own.filter(Boolean).map((s) => s.split(":")[0])).size < 2;
  const [place] = source.split(" ");
  if (!place) return "";
  return run.oneFile && place.includes(":") ? `line ${place.split(":").at(-1)}` : shortName(place.split("/").at(-1), 24);
}

// An operation: its name, which mostly begins with its opcode, and its shape and source line.
function labelOf(run, op) {
  run.labels ??= [];
  if (run.labels[op]) return run.labels[op];
  const { ops } = run, opcode = ops.opcode[op], name = shortName(run.finalOf(run.names[op]), 24);
  const quiet = opcode === "parameter" || opcode === "constant";
  const first = quiet ? `${shortName(name, 20)} ${shapeText(ops.shape[op])}` : name.startsWith(opcode) ? name : shortName(`${name} ${opcode}`, 32);
  const second = quiet ? "" : [shapeText(ops.shape[op]), lineText(run, ops.own[op])].filter(Boolean).join(" · ");
  const us = quiet ? "" : costText(ops.alone.get(op));
  // Alone it says its time, too.
  const width = 18 + Math.max(textWidth(first, quiet ? PLAIN : BOLD), textWidth(us ? `${second} · ${us}` : second));
  return run.labels[op] = { quiet, first, second, us, width, height: quiet ? ONE_LINE : TWO_LINES };
}

// The final kernel that a box is, as soon as it has all that it ends with.
function kernelOf(run, box, at = run.length) {
  if (!run.lastChange) {
    run.lastChange = new Int32Array(run.boxes).fill(NONE);
    run.decisions.ops.forEach((ops, n) => {
      for (let k = 0; k < ops.length; k += 3) run.lastChange[ops[k] < REMOVE ? ops[k + 2] : ops[k + 1]] = n;
    });
  }
  return (run.lastChange[box] ?? NONE) < at ? run.kernelAt.get(box) : undefined;
}

// What a box costs at a step: a kernel of the result or of the input; undefined for a fusion in between.
function figuresAt(run, state, box) {
  return kernelOf(run, box, state.at) ?? (state.fused[box] ? undefined : run.ops.alone.get(box));
}

// A kernel: its name, the line it comes from and its kind, its time and how often it is launched.
function kernelLabel(run, state, box) {
  const kernel = kernelOf(run, box, state.at), members = state.members[box], last = greatest(NONE, members);
  const figures = figuresAt(run, state, box), inside = kernelOf(run, run.endsAs[box]);
  const source = lineText(run, kernel?.own || (last === NONE ? "" : run.ops.own[last]));
  const opcode = last === NONE ? "" : run.ops.opcode[last], kind = kernel?.kind ?? opcode, holds = members.length > 1 ? countText(members.length, "operation") : kind;
  const cost = figures ? costText(figures) : inside ? iterationsText(inside) : "";
  return {
    kernel, title: state.shownOf(box), first: shortName(run.finalOf(state.nameOf(box)), 32),
    second: [shapeText(kernel?.shape ?? (last === NONE ? "" : run.ops.shape[last])), source].filter(Boolean).join(" · "),
    third: [cost, holds].filter(Boolean).join(" · "),
  };
}
