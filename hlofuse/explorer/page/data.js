// The page's data, as page.py encodes it.

const NONE = -1;

// The JSON in one of the page's data elements.
async function unpacked(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; n++) bytes[n] = packed.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

async function readData() {
  const json = await unpacked("data");
  const text = (n) => json.strings[n];
  const rules = new Map(json.rules.map(([code, title, sections]) =>
    [text(code), { code: text(code), title: text(title), sections: sections.map((s) => s.map(text)) }]));
  const passTimeline = json.passes ? new PassTimeline(json.passes, json.strings) : null;
  const runs = json.runs.map((run) => new Run(run, json.strings, json.kinds, json.files));
  // One scale for all pictures, so that bars can be compared.
  const most = greatest(1e-9, runs.flatMap((run) => [...run.kernels, ...run.ops.alone.values()].map((figures) => barValue(run, figures))));
  for (const run of runs) run.most = most;
  let texts;
  return {
    title: json.title, rules, passTimeline, runs,
    files: json.files.map(([name, note, embedded]) => ({ name: text(name), note: text(note), embedded })),
    pairs: json.pairs,
    // HLO text of the kernels and the source files, unpacked on first use.
    texts: () => (texts ??= unpacked("texts")),
  };
}

// Of any number of values: as arguments of Math.max, a hundred thousand overflow the call stack.
function greatest(least, values) {
  for (const value of values) if (value > least) least = value;
  return least;
}

// What bars show: time of all iterations, or bytes where there are no times.
function barValue(run, figures) { return !figures ? 0 : (run.timed ? figures.us ?? 0 : figures.bytes) * figures.iterations; }

function summed(differences) {
  let last = 0;
  return differences.map((d) => (last += d));
}

// One replay. Columns stay columns: a decision is its index.
class Run {
  constructor(json, strings, kinds, files) {
    const text = (n) => strings[n];
    // The user's own line, where a source line is one of an installed package.
    const own = ([file, line], source) => {
      const name = file === NONE ? "" : `${text(files[file][0])}:${line}`;
      return name && name !== source.split(" ")[0] ? name : source;
    };
    const texts = (column) => column.map(text);
    Object.assign(this, {
      label: json.label, headline: json.headline, before: json.before, after: json.after, notes: json.notes,
      verdict: json.verdict, slowest: json.slowest, functions: json.functions, memory: json.memory, memoryPlot: json.memory_plot,
      boxes: json.boxes, kernelsBefore: json.kernels_before,
      computations: texts(json.computations), passes: texts(json.passes), names: texts(json.names),
      endsAs: summed(json.ends_as),
    });
    // Of kernels: by the name at the end of fusion the one that a profiler shows, where it is another.
    this.finalNames = new Map(json.final_names.map(([name, final]) => [text(name), text(final)]));
    this.namesAtFusion = new Map([...this.finalNames].map(([name, final]) => [final, name]));
    const o = json.operations;
    this.ops = {
      count: o.opcode.length, opcode: texts(o.opcode), shape: texts(o.shape), computation: o.computation,
      operands: o.operands.map((list, n) => list.map((d) => n - d)), calls: o.calls, bytes: o.bytes,
      launched: o.launched, source: texts(o.source), opName: texts(o.op_name), layer: texts(o.layer), path: texts(o.path),
      file: o.file, line: summed(o.line),
    };
    this.ops.own = this.ops.source.map((source, n) => own([this.ops.file[n], this.ops.line[n]], source));
    // Figures of an operation as a kernel of its own.
    this.ops.alone = new Map(Object.entries(o.alone).map(([n, [us, bytes, flops, floor, iterations]]) =>
      [Number(n), { us, bytes, flops, floor: floor === 1, iterations }]));
    this.ops.users = Array.from({ length: this.ops.count }, () => []);
    this.ops.operands.forEach((list, n) => new Set(list).forEach((i) => this.ops.users[i].push(n)));
    const d = json.decisions;
    this.decisions = {
      count: d.kind.length, kind: d.kind.map((k) => kinds[k]), pass: d.pass, step: d.step,
      computation: texts(d.computation), producer: d.producer, consumer: d.consumer,
      producerName: texts(d.producer_name), consumerName: texts(d.consumer_name),
      resultName: texts(d.result_name), others: d.others, rule: texts(d.rule), reason: texts(d.reason),
      figures: texts(d.figures), usFused: d.us_fused, usUnfused: d.us_unfused, usSaved: d.us_saved,
      why: texts(d.why), duplicated: d.duplicated, ops: d.ops, kernels: summed(d.kernels),
    };
    this.regions = json.regions.map(([computation, kernels]) =>
      ({ computation, kernels: kernels.map(([box, inside]) => ({ box, inside: summed(inside) })) }));
    this.regionOf = new Map();  // by box at the last step
    this.regions.forEach((r, n) => r.kernels.forEach((k) => this.regionOf.set(k.box, n)));
    const k = json.kernels;
    this.kernels = k.name.map((name, n) => ({
      n, name: text(name), box: k.box[n], kind: text(k.kind[n]), bytes: k.bytes[n], read: k.read[n], written: k.written[n],
      flops: k.flops[n], us: k.us[n], usFloor: k.us_floor[n], usMemory: k.parts[n]?.[0] ?? null, usCompute: k.parts[n]?.[1] ?? null,
      measured: k.measured_us[n], bound: text(k.bound[n]), emitter: text(k.parts[n]?.[2] ?? 0), source: text(k.source[n]), own: own(k.line[n], text(k.source[n])),
      layer: text(k.layer[n]), iterations: k.iterations[n], floor: k.floor[n] === 1, result: k.result[n] === 1,
      shape: text(k.shape[n]), bytesOut: k.bytes_out[n], place: k.line[n],
      reads: k.reads[n].map(([kernel, value, shape, bytes]) => ({ kernel, name: text(value), shape: text(shape), bytes })),
      atFusion: this.namesAtFusion.get(text(name)) ?? "",
    }));
    this.kernelAt = new Map(this.kernels.map((kernel) => [kernel.box, kernel]));  // by box at the last step
    this.timed = this.after.time_us !== null;
    this.isFused = !json.passes.length;  // as it was given: no pass was replayed
    this.isMeasured = this.kernels.some((kernel) => kernel.measured !== null);
    const h = json.refused;
    this.refusedEdges = h.decision.map((decision, n) => ({
      decision, producer: text(h.producer[n]), consumer: text(h.consumer[n]), rule: text(h.rule[n]), us: h.us[n],
      bytes: h.bytes[n],
    }));
    this.boxNamed = new Map(json.names.slice(0, this.ops.count).map((name, n) => [text(name), n]));
    d.ops.forEach((ops) => {
      for (let n = 0; n < ops.length; n += 3)
        if (ops[n] === RENAME || ops[n] === APPEAR) this.boxNamed.set(this.names[ops[n + 2]], ops[n + 1]);
    });
  }

  finalOf(name) { return this.finalNames.get(name) ?? name; }

  // `loop_add_fusion (fusion.3)`: the final name, then that at fusion.
  shown(name) { return this.finalNames.has(name) ? `${this.finalNames.get(name)} (${name})` : name; }

  // The kernel that contains what is in a box, at the last step.
  kernelOfBox(box) { return this.kernelAt.get(this.endsAs[box]); }

  // The names of a box, from the input to the end of fusion.
  namesOf(box) {
    if (!this.renamed) {
      this.renamed = new Map();
      for (const ops of this.decisions.ops)
        for (let n = 0; n < ops.length; n += 3)
          if (ops[n] === RENAME || ops[n] === APPEAR)
            this.renamed.set(ops[n + 1], [...(this.renamed.get(ops[n + 1]) ?? []), this.names[ops[n + 2]]]);
    }
    return [...new Set([...(box !== NONE && box < this.ops.count ? [this.names[box]] : []), ...(this.renamed.get(box) ?? [])])];
  }

  boxOf(name) { return this.boxNamed.get(name) ?? this.boxNamed.get(this.namesAtFusion.get(name)); }

  get length() { return this.decisions.count; }

  regionOfBox(box) { return box === NONE ? undefined : this.regionOf.get(this.endsAs[box]); }

  // The region that shows a decision.
  regionOfDecision(n) {
    const d = this.decisions;
    for (const box of [d.producer[n], d.consumer[n], ...d.others[n]]) {
      const found = this.regionOfBox(box);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  sourceOfBox(box) { return box >= 0 && box < this.ops.count ? this.ops.source[box] : ""; }

  layerOfDecision(n) {
    const { producer, consumer } = this.decisions, layer = (box) => (box >= 0 && this.ops.layer[box]) || "";
    return layer(producer[n]) || layer(consumer[n]);
  }

  sourceOfDecision(n) {
    return this.sourceOfBox(this.decisions.producer[n]) || this.sourceOfBox(this.decisions.consumer[n]);
  }

  // Every decision about a box, in order.
  historyOf(box) {
    if (!this.history) {
      this.history = new Map();
      const note = (b, n) => {
        if (b === NONE) return;
        const list = this.history.get(b);
        if (!list) this.history.set(b, [n]);
        else if (list.at(-1) !== n) list.push(n);
      };
      const d = this.decisions;
      for (let n = 0; n < d.count; n++) {
        note(d.producer[n], n);
        note(d.consumer[n], n);
        d.others[n].forEach((b) => note(b, n));
      }
    }
    return this.history.get(box) ?? [];
  }
}
