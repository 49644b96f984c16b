// What colours and lines mean.

function legend(view) {
  const signs = view === "steps"
    ? [["sign element", "computes"], ["sign move", "moves"], ["sign reduce", "reduces"], ["sign matmul", "library or matrix product"],
      ["sign source", "input"], ["sign hull-sign", "one kernel"], ["line fuse", "fused"], ["line ineligible", "refused"], ["line priority", "estimated"]]
    : view === "fusion" && byId("panes").querySelector(".edge.refused") ? [["line is", "time of the kernel, or its bytes"], ["line ineligible", "refused, with its rule"]]
    : [["line was", "kernels as given"], ["line is", "kernels at this step"]];
  byId("legend").replaceChildren(...signs.map(([name, words]) =>
    el("li", {}, el("span", { class: name, "aria-hidden": "true" }), words)));
}
