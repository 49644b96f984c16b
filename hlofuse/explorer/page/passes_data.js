// What every pass of the compilation did, as page.py encodes it.

class PassTimeline {
  constructor(json, strings) {
    const text = (n) => strings[n], texts = (column) => column.map(text), { steps, threads, links } = json;
    Object.assign(this, { headline: json.headline, notes: json.notes, start: json.start });
    this.steps = steps.pass.map((pass, n) => ({
      n, pass: text(pass), number: steps.number[n], pipeline: text(steps.pipeline[n]), file: text(steps.file[n]),
      what: text(steps.what[n]), since: steps.since[n], problem: text(steps.problem[n]), changed: steps.changed[n] === 1,
      weight: steps.weight[n], ms: steps.ms[n], instructions: steps.instructions[n], kernels: steps.kernels[n],
      fusions: steps.fusions[n], opcodes: steps.opcodes[n].map(([op, before, after]) => [text(op), before, after]),
      hidden: steps.hidden[n],
      groups: steps.groups[n].map(([kind, words, count, notes, before, after, hidden]) => ({
        kind: text(kind), words: text(words), count, notes: texts(notes), before: texts(before), after: texts(after), hidden,
      })),
    }));
    this.threads = {
      count: threads.name.length, name: texts(threads.name), opcode: texts(threads.opcode), shape: texts(threads.shape),
      fusion: texts(threads.fusion), begins: summed(threads.begins), source: texts(threads.source), instead: texts(threads.instead),
    };
    const from = summed(links.thread), step = summed(links.step), to = summed(links.to);
    this.links = from.map((thread, n) => ({ thread, step: step[n], how: json.hows[links.how[n]], to: to[n] }));
    this.next = Array.from({ length: this.threads.count }, () => []);
    this.last = Array.from({ length: this.threads.count }, () => []);
    for (const link of this.links) {
      this.next[link.thread].push(link);
      if (link.to !== NONE) this.last[link.to].push(link);
    }
  }

  // The step that changes a thread.
  endOf(thread) { return this.next[thread].find((link) => link.how !== "copied")?.step ?? this.steps.length; }

  // The thread of that name in the dump of a step; undefined if there is none.
  at(name, step) {
    return this.named(name).findLast((t) => this.threads.begins[t] <= step && step < this.endOf(t));
  }

  named(name) {
    if (!this.byName) {
      this.byName = new Map();
      this.threads.name.forEach((name, t) => this.byName.set(name, [...(this.byName.get(name) ?? []), t]));
    }
    return this.byName.get(name) ?? [];
  }

  // All that led to a thread and all that it became: links in order, and where they begin and end.
  pathOf(thread) {
    const links = new Set(), seen = new Set([thread]);
    const traverse = (begin, near, far) => {
      for (const todo = [begin]; todo.length;)
        for (const link of near[todo.pop()]) {
          links.add(link);
          const other = far(link);
          if (other === NONE || seen.has(other)) continue;
          seen.add(other);
          todo.push(other);
        }
    };
    traverse(thread, this.last, (link) => link.thread);
    traverse(thread, this.next, (link) => link.to);
    const all = [...seen];
    return {
      begins: all.filter((t) => !this.last[t].length), ends: all.filter((t) => this.endOf(t) === this.steps.length),
      links: [...links].sort((a, b) => a.step - b.step || a.thread - b.thread),
    };
  }
}
