// What colours and lines mean: of those that are drawn.

function legend(view, colours) {
  const panes = byId("panes"), drawn = (name) => panes.querySelector(`svg .${name}`);
  const lines = view === "steps" ? [["line fuse", "fused", ".pair.fuse"], ["line ineligible", "refused, with its rule", ".refused, .pair.ineligible"], ["line priority", "estimated", ".pair.priority"]]
    : [["line ineligible", "refused, with its rule", ".refused"], ["line is", "share of time, or of bytes", ".share"], ["line back", "back to an earlier part", ".back"]];
  const entries = [...colours.legend.filter(([name]) => drawn(name)).map(([name, words]) => [`sign ${name}`, words]),
    ...lines.filter(([, , which]) => panes.querySelector(which))];
  byId("legend").replaceChildren(...entries.map(([name, words]) => el("li", {}, el("span", { class: name, "aria-hidden": "true" }), words)));
}
