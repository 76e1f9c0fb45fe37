// Replaces the curves of a page by plots with axes and a cursor. Without this script the curves are readable SVG.
"use strict";

const style = getComputedStyle(document.documentElement);
const colour = (name) => style.getPropertyValue(name).trim();
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const utc = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

for (const place of document.querySelectorAll(".plot[data-points]")) {
  const data = JSON.parse(place.dataset.points);
  const times = data[0];
  if (times.length < 2) continue;
  const isLong = times[times.length - 1] - times[0] > 86400;
  const line = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), grid: line, ticks: line };
  const size = () => ({ width: Math.max(place.clientWidth, 200), height: 180 });
  place.textContent = "";
  const plot = new uPlot({
    ...size(),
    axes: [
      { ...axis, space: isLong ? 90 : 60, values: (_, at) => at.map((each) => utc(each).slice(isLong ? 5 : 11, 16)) },
      { ...axis, size: 60, values: (_, at) => at.map((each) => compact.format(each)) },
    ],
    scales: { y: { range: (_, low, high) => [0, high || 1] } },
    series: [
      { label: "UTC", value: (_, at) => (at == null ? "–" : utc(at)) },
      {
        label: place.dataset.label,
        stroke: colour("--accent"),
        width: 1.5,
        value: (_, at) => (at == null ? "–" : exact.format(at)),
      },
    ],
  }, data, place);
  new ResizeObserver(() => plot.setSize(size())).observe(place);
}
