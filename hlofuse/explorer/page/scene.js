// Where everything of a region stands, and how lines get from one to the other. The places are those of the
// final kernels, so that a fusion grows into room that is kept for it and nothing moves from step to step.

const PAD = 12, BARE = 5, TAG = 14;

class Scene {
  constructor(run, regionNumber, room) {
    this.run = run;
    this.number = regionNumber;
    this.region = run.regions[regionNumber];
    this.slots = new Map();  // "operation:final box" to its place
    this.routes = new Map();  // "operation:reader:final box of the reader", and ":within" for a line inside of it
    const leaves = new Map();
    const kernels = this.region.kernels.map(({ box, inside }) => {
      const parts = inside.map((op) => {
        const size = labelOf(run, op), leaf = { op, box, ...size, slot: size };
        leaves.set(`${op}:${box}`, leaf);
        return leaf;
      });
      if (parts.length > 1) return { box, children: parts, pad: PAD, head: TAG, fixed: true, gapX: 14, gapY: 16 };
      // By itself, with room around it for its outline.
      const leaf = parts[0] ?? { op: NONE, box, slot: { width: 90, height: ONE_LINE } };
      if (!parts.length) leaves.set(`-:${box}`, leaf);
      return Object.assign(leaf, { bare: BARE, width: leaf.slot.width + 2 * BARE, height: leaf.slot.height + 2 * BARE });
    });
    const flows = this.flows(leaves);
    const root = { children: kernels, pad: PAD, head: 0 };
    const size = nested(root, flows, { gapX: 22, gapY: 26, widest: Math.max(1500, room?.width ?? 0), room });
    this.width = size.width;
    this.height = size.height;
    for (const [key, { op, at, slot, bare = 0 }] of leaves) this.slots.set(key, { op, x: at[0] + bare, y: at[1] + bare, width: slot.width, height: slot.height });
    for (const { from, to, route } of flows) {
      if (!route) continue;
      const within = from.box === to.box, [x, top, bottom, detour] = route[0], [xEnd, topEnd, bottomEnd] = route.at(-1);
      route[0] = [x, top - (from.bare ?? 0), bottom, detour];
      route[route.length - 1] = [xEnd, topEnd, bottomEnd + (to.bare ?? 0)];
      this.routes.set(`${from.op}:${to.op}:${to.box}${within ? ":within" : ""}`, route);
    }
  }

  // What each operation reads: the copy in its own kernel, and the original, which it reads until it is copied.
  flows(leaves) {
    const found = [];
    for (const to of leaves.values()) {
      if (to.op === NONE) continue;
      for (const o of new Set(this.run.ops.operands[to.op])) {
        const copy = leaves.get(`${o}:${to.box}`), original = leaves.get(`${o}:${this.run.endsAs[o]}`);
        if (copy) found.push({ from: copy, to });
        if (original && original !== copy) found.push({ from: original, to });
      }
    }
    return found;
  }

  // Where an operation stands while it is in this box; undefined when that is in another region.
  slot(op, box) { return this.slots.get(`${op}:${this.run.endsAs[box]}`); }

  // From an operation, read from that box, to a reader in another or the same; undefined where only a bare line leads.
  route(op, home, reader, box) {
    const from = this.run.endsAs[home], to = this.run.endsAs[box];
    if (from !== to && from !== this.run.endsAs[op]) return undefined;
    return this.routes.get(`${op}:${reader}:${to}${from === to ? ":within" : ""}`);
  }
}
