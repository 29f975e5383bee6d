// Lines of the last ten minutes, told by the server as they come. So many points are kept, and no more.
"use strict";
(() => {
  const section = document.querySelector("[data-stream]");
  if (!section || !window.uPlot) return;
  const POINTS_MAX = 300;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    return size >= 1e9 ? `${+(value / 1e9).toFixed(1)}G` : size >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : size >= 1e3 ? `${+(value / 1e3).toFixed(1)}k` : `${+value.toFixed(1)}`;
  };
  const time = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const STEPS = [1, 2, 5].flatMap((each) => Array.from({ length: 13 }, (_, power) => each * 10 ** power)).sort((one, other) => one - other);
  const points = [];
  const charts = [];
  const LINES = { rates: [[1, "written", "--accent"], [2, "read", "--second"]], lag: [[3, "lag", "--accent"]] };

  const make = (place) => {
    const lines = LINES[place.dataset.chart];
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui", size: 48 };
    const options = {
      width: place.clientWidth, height: 180, cursor: { y: false, points: { size: 6 } }, legend: { show: false }, padding: [8, 8, 0, 0],
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.15 : 1] } },
      axes: [{ ...axis, size: 28, space: 80, values: (_, all) => all.map((each) => time.format(each * 1000)) }, { ...axis, incrs: STEPS, values: (_, all) => all.map(short) }],
      series: [{}, ...lines.map(([, label, name]) => ({ label, stroke: colour(name), width: 2, points: { show: false }, fill: name === "--accent" ? colour("--accent-wash") : undefined }))],
    };
    const data = () => [points.map((each) => each[0] / 1000), ...lines.map(([index]) => points.map((each) => each[index]))];
    const plot = new uPlot(options, data(), place);
    new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 180 })).observe(place);
    const named = place.getAttribute("aria-label").split(";")[0];
    return {
      place,
      draw() {
        plot.setData(data());
        const last = points[points.length - 1];
        if (last) place.setAttribute("aria-label", `${named}; now ${lines.map(([index, label]) => `${label} ${short(last[index]) || "not known"}`).join(", ")}`);
      },
      end() { plot.destroy(); place.setAttribute("aria-label", named); },
    };
  };
  const makeAll = () => { for (const each of section.querySelectorAll("[data-chart]")) charts.push(make(each)); };
  const drawAll = () => { for (const each of charts) each.draw(); };
  makeAll();
  document.addEventListener("ropewalk:theme", () => { for (const each of charts.splice(0)) each.end(); makeAll(); });

  const source = new EventSource(section.dataset.stream);
  source.addEventListener("points", (event) => { points.splice(0, points.length, ...JSON.parse(event.data)); drawAll(); });
  source.addEventListener("point", (event) => {
    const point = JSON.parse(event.data);
    if (points.length && point[0] <= points[points.length - 1][0]) return;
    points.push(point);
    points.splice(0, points.length - POINTS_MAX);
    drawAll();
  });
  addEventListener("pagehide", () => source.close());
})();
