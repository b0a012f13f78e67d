// Draws the context over time; without this script the table of the same figures stands.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const tokens = (value) =>
    value >= 1e6 ? `${(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${Math.round(value / 1e3)}k` : `${value}`;

  function marks(data, pixels) {
    return (plot) => {
      const { ctx } = plot;
      const top = plot.bbox.top;
      const bottom = top + plot.bbox.height;
      ctx.save();
      ctx.lineWidth = pixels;
      ctx.font = `${11 * pixels}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = "center";
      const line = (place, tone, dash, sign) => {
        const x = Math.round(plot.valToPos(place, "x", true)) + 0.5;
        ctx.strokeStyle = ctx.fillStyle = tone;
        ctx.setLineDash(dash.map((length) => length * pixels));
        ctx.beginPath();
        ctx.moveTo(x, top + 14 * pixels);
        ctx.lineTo(x, bottom);
        ctx.stroke();
        ctx.fillText(sign, x, top + 10 * pixels);
      };
      data.kinds.forEach((kind, place) => {
        if (kind === "plan") line(place, colour("--summarised"), [], "▼");
        if (kind === "rewound") line(place, colour("--hidden"), [6, 3], "↩");
      });
      for (const mark of data.break_even) line(mark.place, colour("--due"), [2, 3], "$");
      ctx.restore();
    };
  }

  function draw(element, data) {
    const places = data.tokens.map((_, place) => place);
    const limit = (value) => (value ? places.map(() => value) : null);
    const limits = [
      ["Window", limit(data.limits.window), "--kept", []],
      ["Trigger", limit(data.limits.trigger), "--due", [8, 4]],
      ["Goal", limit(data.limits.goal), "--summarised", [2, 4]],
    ].filter(([, values]) => values);
    const muted = colour("--pico-muted-color");
    const grid = { stroke: colour("--pico-muted-border-color"), width: 1 };
    const series = [
      { label: "Messages", value: (_, place) => (place == null ? "–" : data.messages[place].toLocaleString("en")) },
      {
        label: "Context", stroke: colour("--used"), width: 2, fill: `${colour("--used")}22`,
        value: (_, value) => (value == null ? "–" : value.toLocaleString("en")), points: { show: false },
      },
      ...limits.map(([label, , tone, dash]) => ({
        label, stroke: colour(tone), width: 1.5, dash, points: { show: false },
        value: (_, value) => (value == null ? "–" : value.toLocaleString("en")),
      })),
    ];
    element.replaceChildren();
    const size = () => ({ width: element.clientWidth, height: Math.min(320, Math.max(220, element.clientWidth * 0.4)) });
    const plot = new uPlot(
      {
        ...size(), series,
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.12 || 1] } },
        axes: [
          {
            stroke: muted, grid: { show: false }, ticks: grid, label: "messages", labelSize: 18, size: 34, font: "12px sans-serif",
            values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && tick in data.messages ? data.messages[tick].toLocaleString("en") : "")),
          },
          { stroke: muted, grid, ticks: grid, size: 52, font: "12px sans-serif", values: (_, ticks) => ticks.map(tokens) },
        ],
        cursor: { y: false, points: { size: 6 } },
        hooks: { draw: [marks(data, window.devicePixelRatio || 1)] },
      },
      [places, data.tokens, ...limits.map(([, values]) => values)],
      element,
    );
    const key = document.createElement("p");
    key.className = "plot-key";
    key.textContent = "▼ compaction   $ has paid for itself (break-even)   ↩ rewound";
    element.append(key);
    return () => plot.setSize(size());
  }

  async function show(element) {
    const response = await fetch(element.dataset.plot, { credentials: "same-origin" });
    if (!response.ok) return;
    const data = await response.json();
    element.hidden = false;
    let resize = draw(element, data);
    dark.addEventListener("change", () => { resize = draw(element, data); });
    new ResizeObserver(() => resize()).observe(element);
  }
  for (const element of document.querySelectorAll("[data-plot]")) show(element);
})();
