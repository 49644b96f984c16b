// The keyboard, the list of its keys, and light or dark.

class Keys {
  constructor(app) {
    this.app = app;
    byId("theme").addEventListener("click", () => this.toggleTheme());
    byId("help").addEventListener("click", () => this.showKeys());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const { app } = this;
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.id !== "slider";
    if (typing) return;
    const keys = {
      ArrowRight: () => app.goTo(app.state.at + 1), ArrowLeft: () => app.goTo(app.state.at - 1),
      PageDown: () => app.goTo(app.state.at + 10), PageUp: () => app.goTo(app.state.at - 10),
      Home: () => app.goTo(0), End: () => app.goTo(app.run.length), " ": () => app.timeline.play(),
      n: () => app.timeline.listed(1), p: () => app.timeline.listed(-1), f: () => app.panes.forEach((pane) => pane.fit()),
      "+": () => app.panes[0]?.magnify(0.8), "-": () => app.panes[0]?.magnify(1.25),
      "/": () => { byId("search").focus(); byId("search").select(); }, "?": () => this.showKeys(), Escape: () => app.clear(),
      ".": () => app.nextHit(1), ",": () => app.nextHit(-1), o: () => app.toggleChosen(), "]": () => app.foldAll(true), "[": () => app.foldAll(false),
    };
    if (app.drawn === "film") Object.assign(keys, {
      ArrowRight: () => app.passesView.move(1), ArrowLeft: () => app.passesView.move(-1), ArrowDown: () => app.passesView.move(1),
      ArrowUp: () => app.passesView.move(-1), PageDown: () => app.passesView.move(10), PageUp: () => app.passesView.move(-10),
      Home: () => app.passesView.move(-1e9), End: () => app.passesView.move(1e9), " ": () => app.passesView.move(1),
      Escape: () => app.change({ dump: "" }),
    });
    const pressed = keys[event.key];
    if (!pressed || (event.key === " " && event.target.tagName === "BUTTON")) return;
    event.preventDefault();
    pressed();
  }

  showKeys() {
    const dialog = byId("keys");
    const rows = [["→ ←", "next step, previous step"], ["Page ↓ ↑", "ten steps"], ["Home End", "the module as given, the final module"],
      ["Space", "play"], ["n p", "next and previous decision of the list"], ["click", "select"], ["double click, o", "open or close what is selected"],
      ["] [", "open, close one more level"], ["Tab, Enter", "from box to box; select, then open"], ["/", "search"],
      [". ,", "next and previous hit of the search"], ["Esc", "clear selection and search"], ["f", "fit the picture into the window"], ["+ −", "zoom"],
      ["wheel, drag", "zoom and move the picture"]];
    dialog.replaceChildren(el("h2", {}, "Keys"), el("dl", {}, ...rows.flatMap(([k, words]) => [el("dt", {}, k), el("dd", {}, words)])),
      el("form", { method: "dialog" }, el("button", {}, "Close")));
    dialog.showModal();
  }

  toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.app.timeline.paint();
  }
}
