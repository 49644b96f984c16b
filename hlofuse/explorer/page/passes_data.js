// What every pass of the compilation did, as page.py encodes it.

class PassTimeline {
  constructor(json, strings) {
    const text = (n) => strings[n], texts = (column) => column.map(text), { steps } = json;
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
  }
}
