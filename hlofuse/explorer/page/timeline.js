// The line at the bottom: kernels left after each decision, passes, where decisions were refused.

class Timeline {
  constructor(app) {
    this.app = app;
    this.timer = 0;
    const to = (id, act) => byId(id).addEventListener("click", act);
    to("first", () => app.goTo(0));
    to("back", () => app.goTo(app.state.at - 1));
    to("next", () => app.goTo(app.state.at + 1));
    to("last", () => app.goTo(app.run.length));
    to("play", () => this.play());
    to("listed-back", () => this.listed(-1));
    to("listed-next", () => this.listed(1));
    byId("slider").addEventListener("input", (event) => app.goTo(Number(event.target.value)));
    new ResizeObserver(() => this.paint()).observe(byId("curve"));
  }

  open() {
    byId("slider").max = this.app.run.length;
    this.paint();
  }

  follow() {
    const { run, state } = this.app, at = state.at;
    byId("slider").value = at;
    const words = at ? sentence(run, at - 1) : "the module as given";
    byId("slider").setAttribute("aria-valuetext", `${at}: ${words}`);
    const kernels = at ? run.decisions.kernels[at - 1] : run.kernelsBefore;
    byId("count").textContent = `${numberText(at)} / ${numberText(run.length)} · ${countText(kernels, "kernel")}${at === run.length && kernels !== run.kernels.length ? " at the end of fusion" : ""}`;
    byId("now").textContent = words;
    byId("first").disabled = byId("back").disabled = at === 0;
    byId("last").disabled = byId("next").disabled = at === run.length;
  }

  listed(by) {
    const { listed } = this.app.panels, now = this.app.state.at - 1;
    const next = by > 0 ? listed.find((n) => n > now) : listed.findLast((n) => n < now);
    if (next !== undefined) this.app.goTo(next + 1);
  }

  play(on = !this.timer) {
    clearInterval(this.timer);
    this.timer = 0;
    const button = byId("play");
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    const { app } = this;
    if (app.state.at === app.run.length) app.goTo(0);
    // Estimates change nothing to be seen: a film of them would bore.
    this.timer = setInterval(() => {
      const d = app.run.decisions;
      let n = app.state.at;
      while (n < d.count - 1 && d.kind[n] === "priority") n++;
      app.goTo(n + 1);
      if (app.state.at >= app.run.length) this.play(false);
    }, 450);
  }

  paint() {
    const canvas = byId("curve"), { run } = this.app;
    if (!run || !canvas.clientWidth) return;
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    // As this element has it by day or by night.
    const colour = (name) => {
      canvas.style.color = `var(${name})`;
      return getComputedStyle(canvas).color;
    };
    pen.scale(scale, scale);
    const d = run.decisions, count = Math.max(1, d.count), edge = 8;
    const x = (n) => edge + ((width - 2 * edge) * n) / count;
    const most = greatest(Math.max(run.kernelsBefore, 1), d.kernels);
    const y = (kernels) => height - 2 - ((height - 16) * kernels) / most;
    pen.beginPath();
    pen.moveTo(x(0), height);
    pen.lineTo(x(0), y(run.kernelsBefore));
    let last = -1;
    for (let n = 0; n < d.count; n++) {
      if (d.kernels[n] === last && n < d.count - 1) continue;
      if (last >= 0) pen.lineTo(x(n), y(last));
      last = d.kernels[n];
      pen.lineTo(x(n + 1), y(last));
    }
    pen.lineTo(x(count), height);
    pen.fillStyle = colour("--curve");
    pen.fill();
    const seen = new Set();
    for (let n = 0; n < d.count; n++) {
      if (d.kind[n] !== "ineligible") continue;
      const at = Math.round(x(n + 0.5));
      if (seen.has(at)) continue;
      seen.add(at);
      pen.fillStyle = colour("--refused");
      pen.fillRect(at, height - 5, 1, 5);
    }
    pen.font = "11px system-ui, sans-serif";
    let free = -1;
    for (let n = 0; n < d.count; n++) {
      if (n && d.pass[n] === d.pass[n - 1]) continue;
      pen.fillStyle = colour("--faint");
      // Where a name stands already the line ends below it.
      pen.fillRect(x(n), x(n) < free ? 14 : 0, 1, height);
      const name = run.passes[d.pass[n]];
      if (x(n) < free) continue;
      pen.fillStyle = colour("--soft");
      // A name at the end is written ahead of its line, if nothing is there.
      const wide = pen.measureText(name).width, over = x(n) + 3 + wide > width;
      if (over && x(n) - 3 - wide < free) continue;
      pen.fillText(name, over ? x(n) - 3 - wide : x(n) + 3, 10);
      free = x(n) + wide + 12;
    }
  }
}
