// Replaces the curves of a page by plots with axes and a cursor. Without this script the curves are readable SVG.
"use strict";

const style = getComputedStyle(document.documentElement);
const colour = (name) => style.getPropertyValue(name).trim();
for (const place of document.querySelectorAll(".plot[data-points]")) {
  const data = JSON.parse(place.dataset.points);
  if (data[0].length < 2) continue;
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  const size = () => ({ width: Math.max(place.clientWidth, 200), height: 180 });
  place.textContent = "";
  const plot = new uPlot({
    ...size(),
    axes: [axis, { ...axis, size: 70 }],
    scales: { y: { range: (_, low, high) => [0, high || 1] } },
    series: [{}, { label: place.dataset.label, stroke: colour("--accent"), width: 1.5 }],
  }, data, place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
}
