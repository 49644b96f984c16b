// The module at one step: changes are applied going forward and taken back going back.

const [MOVE, COPY, REMOVE, REPLACE, RENAME, APPEAR] = [0, 1, 2, 3, 4, 5];

class State {
  constructor(run) {
    this.run = run;
    this.at = 0;  // decisions applied
    const { count } = run.ops;
    this.members = Array.from({ length: run.boxes }, (_, b) => (b < count ? [b] : []));
    this.alive = Array.from({ length: run.boxes }, (_, b) => b < count);
    this.name = Array.from({ length: run.boxes }, (_, b) => b);
    this.home = Array.from({ length: count }, (_, n) => n);  // the box one reads an operation's value from
    this.given = Array.from({ length: run.boxes }, (_, b) => (b < count ? [b] : []));  // the operations whose home it is
    // Pairs of a member and what it reads from outside. Of an operation that a box holds a copy of, another
    // member may still read the original.
    this.reads = Array.from({ length: run.boxes }, (_, b) => (b < count ? [...new Set(run.ops.operands[b])].map((o) => b * count + o) : []));
    this.holders = Array.from({ length: count }, (_, n) => new Set([n]));
    this.fused = new Uint32Array(run.boxes);  // joins and new names that made it: more than none is a fusion
    this.undo = [];
  }

  goTo(step) {
    const ops = this.run.decisions.ops;
    while (this.at < step) {
      const list = ops[this.at++], back = [];
      for (let n = 0; n < list.length; n += 3) back.push(this.apply(list[n], list[n + 1], list[n + 2]));
      this.undo.push(back);
    }
    while (this.at > step) {
      const back = this.undo.pop();
      while (back.length) back.pop()();
      this.at--;
    }
  }

  nameOf(box) { return box === NONE ? "" : this.run.names[this.name[box]]; }

  shownOf(box) { return this.run.shown(this.nameOf(box)); }

  isKernel(box) {
    return this.alive[box] && (this.fused[box] > 0 || box >= this.run.ops.count || this.run.ops.launched[box] === 1);
  }

  // The boxes whose values a box reads.
  inputs(box) {
    const { count } = this.run.ops;
    return new Set(this.reads[box].map((pair) => this.home[pair % count]));
  }

  // The boxes that read a box's values.
  outputs(box) {
    const { count, users } = this.run.ops, found = new Set(), wanted = new Set();
    for (const m of this.given[box])
      for (const u of users[m]) {
        wanted.add(u * count + m);
        this.holders[u].forEach((holder) => found.add(holder));
      }
    return new Set([...found].filter((holder) => this.reads[holder].some((pair) => wanted.has(pair))));
  }

  apply(change, box, other) {
    switch (change) {
      case MOVE: {
        const back = [this.join(box, other), this.rehome(box, other), this.remove(box)];
        return () => { while (back.length) back.pop()(); };
      }
      case COPY: return this.join(box, other);
      case REMOVE: return this.remove(box);
      case REPLACE: {
        const back = [this.rehome(box, other), this.remove(box)];
        return () => { while (back.length) back.pop()(); };
      }
      case RENAME: {
        const old = this.name[box];
        this.name[box] = other;
        this.fused[box]++;
        return () => { this.name[box] = old; this.fused[box]--; };
      }
      default:
        this.alive[box] = true;
        this.name[box] = other;
        return () => { this.alive[box] = false; };
    }
  }

  join(box, into) {
    const { count } = this.run.ops;
    const old = this.members[into], oldReads = this.reads[into];
    const news = this.members[box].filter((m) => !this.holders[m].has(into));
    this.members[into] = [...old, ...news];
    news.forEach((m) => this.holders[m].add(into));
    this.fused[into]++;
    const inputs = [...oldReads, ...this.reads[box]].filter((pair) => {
      const home = this.home[pair % count];
      return home !== box && home !== into;
    });
    this.reads[into] = news.length === this.members[box].length ? inputs : [...new Set(inputs)];
    return () => {
      this.members[into] = old;
      this.reads[into] = oldReads;
      news.forEach((m) => this.holders[m].delete(into));
      this.fused[into]--;
    };
  }

  rehome(box, other) {
    const moved = this.given[box], old = this.given[other];
    moved.forEach((m) => { this.home[m] = other; });
    this.given[other] = [...old, ...moved];
    this.given[box] = [];
    return () => {
      moved.forEach((m) => { this.home[m] = box; });
      this.given[other] = old;
      this.given[box] = moved;
    };
  }

  remove(box) {
    this.alive[box] = false;
    this.members[box].forEach((m) => this.holders[m].delete(box));
    return () => {
      this.alive[box] = true;
      this.members[box].forEach((m) => this.holders[m].add(box));
    };
  }
}
