// A figure of the page: its chart, legend, tools, zoom, cursor and export.
import { echarts } from "./library.js";
import { css, dot, escaped, look, marker, variants, wrapped } from "./look.js";
import { blocks, cost, queries } from "./bars.js";
import { history, interaction, percentiles, seconds, sweep } from "./lines.js";
import { ratios } from "./ratios.js";

const KINDS = { ratios, sweep, percentiles, seconds, interaction, history, cost, blocks, queries };
const figures = [];

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) { entry.target.chart.show(); seen.unobserve(entry.target); }
  }
}, { rootMargin: "300px" });

/** Sets up the figures in a part of the page. Each is drawn when it first comes into view. */
export function figuresOf(root) {
  for (const element of root.querySelectorAll("figure.chart")) {
    element.chart = new Figure(element);
    figures.push(element.chart);
    seen.observe(element);
  }
}

let timer;
addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => redraw((figure) => figure.isResized()), 120); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(() => true));
addEventListener("beforeprint", () => { for (const figure of figures) { if (figure.element.offsetParent) { figure.show(); } } });

function redraw(which) {
  figures.filter((figure) => figure.instance && which(figure)).forEach((figure) => figure.draw());
}

/**
 * Changes the data of all figures of one kind, for example for another base, and draws them again.
 * If `change` is `null`, they get back the data of the file.
 */
export function changeData(kind, change, caption) {
  const changed = ofKind(kind);
  for (const figure of changed) {
    figure.changed = change && change(figure.original);
    figure.element.querySelector("figcaption").textContent = change ? caption(figure.caption) : figure.caption;
  }
  // The range of an axis depends on the data of all of them.
  redraw((figure) => changed.includes(figure));
}

const ofKind = (kind) => figures.filter((figure) => figure.original.kind === kind);

class Figure {
  constructor(element) {
    this.element = element;
    this.caption = element.querySelector("figcaption").textContent;
    this.hidden = new Set();
    this.choices = new Map();
  }

  /** The figure's data in the file. They are parsed when they are first needed. */
  get original() { return this.read ||= JSON.parse(this.element.querySelector("script").textContent); }

  /** What is drawn: the data of the file, or those for another base. */
  get data() { return this.changed || this.original; }

  show() {
    if (this.instance) { return; }
    this.names = this.original.names || variants();
    this.tools = part("div", "chart-tools");
    this.legend = part("div", "chart-legend");
    this.box = part("div", "chart-box");
    this.live = part("div", "unseen");
    this.live.setAttribute("aria-live", "polite");
    this.element.append(this.tools, this.legend, this.box, this.live);
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-roledescription", "chart");
    this.box.setAttribute("aria-label", this.element.querySelector("figcaption").textContent +
      " Arrow keys move the cursor, plus and minus zoom, 0 shows all.");
    this.width = this.box.clientWidth;
    this.instance = echarts.init(this.box, null, { renderer: "svg", width: this.width, height: 200 });
    this.listen();
    this.draw();
  }

  isResized() { return this.box.clientWidth > 0 && this.box.clientWidth !== this.width; }

  draw() {
    this.width = this.box.clientWidth || this.width;
    const wanted = [];
    const choice = (label, values) => {
      wanted.push([label, values]);
      return this.choices.get(label) || values[0];
    };
    const { names, hidden, width } = this;
    const peers = () => ofKind(this.data.kind).map((figure) => figure.data);
    this.drawn = KINDS[this.data.kind](this.data, { names, hidden, width, choice, peers });
    const { option, height, zoom, group } = this.drawn;
    if (zoom) { option.dataZoom = [{ type: "inside", xAxisIndex: zoom.xAxisIndex, filterMode: "none", zoomOnMouseWheel: false, moveOnMouseMove: false, moveOnMouseWheel: false, preventDefaultMouseMove: false }]; }
    this.box.style.height = height + "px";
    this.instance.resize({ width, height });
    this.instance.setOption(option, true);
    this.position = -1;
    if (group) { this.instance.group = group; echarts.connect(group); }
    this.drawTools(wanted);
    this.drawLegend();
  }

  drawTools(wanted) {
    const buttons = wanted.map(([label, values]) => {
      const select = part("select");
      select.setAttribute("aria-label", label);
      for (const value of values) { select.append(new Option(`${label}: ${value}`, value)); }
      select.value = this.choices.get(label) || values[0];
      select.addEventListener("change", () => { this.choices.set(label, select.value); this.draw(); this.tools.querySelector(`[aria-label="${label}"]`).focus(); });
      return select;
    });
    if (this.drawn.zoom) {
      buttons.push(button("+", "Zoom in", () => this.zoomBy(0.5)), button("−", "Zoom out", () => this.zoomBy(2)), button("Show all", "", () => this.zoomTo(0, 100)));
    }
    buttons.push(button("SVG", "Save as SVG", () => this.save("svg")), button("PNG", "Save as PNG", () => this.save("png")));
    this.tools.replaceChildren(...buttons);
  }

  /** Draws the legend: each variant's name and colour. A click hides or shows the variant. */
  drawLegend() {
    const { keys, legend } = this.drawn;
    if (keys) { return this.legend.replaceChildren(...keys.map((panel) => { const line = part("div"); line.append(...panel.map(([name, number]) => key(number, name))); return line; })); }
    if (legend) { return this.legend.replaceChildren(...legend.map((name, number) => key(number, name))); }
    const used = this.data.variants || (this.data.series || []).map((line) => line.variant);
    const ids = [...new Set(this.data.panels && this.data.panels[0].lines ? this.data.panels.flatMap((panel) => panel.lines.map((line) => line.variant)) : used)];
    if (ids.length < 2) { return this.legend.replaceChildren(...ids.map((variant) => key(variant, this.names[variant]))); }
    this.legend.replaceChildren(...ids.map((variant) => {
      const toggle = button("", "", () => {
        this.hidden.has(variant) ? this.hidden.delete(variant) : this.hidden.add(variant);
        if (this.hidden.size === ids.length) { this.hidden.clear(); }
        this.draw();
        this.legend.children[ids.indexOf(variant)].focus();
      });
      toggle.setAttribute("aria-pressed", String(!this.hidden.has(variant)));
      toggle.append(key(variant, this.names[variant]));
      return toggle;
    }));
  }

  listen() {
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("dblclick", () => this.zoomTo(0, 100));
    let from = null, band = null;
    this.box.addEventListener("pointerdown", (event) => {
      if (!this.drawn.zoom || event.pointerType !== "mouse" || event.button) { return; }
      from = event.clientX;
      band = part("div", "chart-band");
    });
    addEventListener("pointermove", (event) => {
      if (from === null) { return; }
      const box = this.box.getBoundingClientRect();
      if (!band.parentNode && Math.abs(event.clientX - from) > 4) { this.box.append(band); }
      band.style.left = Math.min(from, event.clientX) - box.left + "px";
      band.style.width = Math.abs(event.clientX - from) + "px";
    });
    addEventListener("pointerup", (event) => {
      if (from === null) { return; }
      const box = this.box.getBoundingClientRect(), ends = [from, event.clientX].map((x) => x - box.left).sort((a, b) => a - b);
      band.remove();
      from = null;
      if (ends[1] - ends[0] > 8) { this.zoomOn(ends); }
    });
  }

  /** Zooms to the range between two horizontal positions in pixels. */
  zoomOn([left, right]) {
    const axis = this.instance.getModel().getComponent("xAxis", 0).axis;
    const [begin, end] = axis.toGlobalCoord ? [axis.toGlobalCoord(0), axis.toGlobalCoord(axis.getExtent()[1])] : [0, this.width];
    const { start, end: last } = this.window();
    const share = (x) => start + (last - start) * Math.max(0, Math.min(1, (x - begin) / (end - begin)));
    this.zoomTo(share(left), share(right));
  }

  window() {
    const zoom = this.instance.getOption().dataZoom;
    return zoom && zoom.length ? zoom[0] : { start: 0, end: 100 };
  }

  zoomTo(start, end) { this.instance.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: Math.max(0, start), end: Math.min(100, end) }); }

  zoomBy(factor) {
    const { start, end } = this.window(), middle = (start + end) / 2, half = Math.min(50, Math.max(0.5, (end - start) / 2 * factor));
    const from = Math.max(0, Math.min(100 - 2 * half, middle - half));
    this.zoomTo(from, from + 2 * half);
  }

  onKey(event) {
    const { start, end } = this.window(), part = (end - start) / 4;
    const keys = {
      "+": () => this.zoomBy(0.5), "=": () => this.zoomBy(0.5), "-": () => this.zoomBy(2), "0": () => this.zoomTo(0, 100),
      "ArrowRight": () => event.shiftKey ? this.zoomTo(start + Math.min(part, 100 - end), end + Math.min(part, 100 - end)) : this.moveCursor(1),
      "ArrowLeft": () => event.shiftKey ? this.zoomTo(start - Math.min(part, start), end - Math.min(part, start)) : this.moveCursor(-1),
      "Escape": () => this.instance.dispatchAction({ type: "hideTip" }),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
  }

  /** Moves the cursor by `by` values. Screen readers read the tooltip out. */
  moveCursor(by) {
    const series = this.instance.getOption().series;
    const places = series.flatMap((line, at) => (line.silent ? [] : line.data.map((_, index) => [at, index])));
    const isAxis = (this.instance.getOption().tooltip[0] || {}).trigger === "axis";
    const wanted = isAxis ? places.filter(([at]) => at === places[0][0]) : places;
    if (!wanted.length) { return; }
    this.position = (this.position + by + wanted.length) % wanted.length;
    const [seriesIndex, dataIndex] = wanted[this.position];
    this.instance.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
    // ECharts shows the tooltip a moment later.
    setTimeout(() => {
      const tips = [...document.querySelectorAll("body > div")].filter((box) => box.style.position === "absolute" && box.style.visibility !== "hidden" && box.querySelector(".dot"));
      const tip = tips.pop();
      if (tip) { this.live.textContent = [...tip.children].map((line) => line.textContent).join("; "); }
    }, 100);
  }

  name() { return (this.element.id || "chart") + "-" + (document.title || "dbdyno").replace(/[^\w.-]+/g, "-").slice(0, 40); }

  /** Returns the chart with its caption and legend as one SVG. */
  svg() {
    const source = this.box.querySelector("svg").cloneNode(true);
    const width = this.width, height = this.box.clientHeight;
    const caption = wrapped(this.element.querySelector("figcaption").textContent, width - 16).split("\n");
    const head = 8 + 16 * caption.length;
    const entries = [...this.legend.querySelectorAll(".key")].map((entry) => [entry.textContent.trim(), Number(entry.dataset.look)]);
    let x = 8, y = head + 14;
    const legend = entries.map(([name, number]) => {
      const length = name.length * 7 + 24;
      if (x + length > width && x > 8) { x = 8; y += 18; }
      const text = `${markerSvg(number, x + 5, y - 4)}<text x="${x + 14}" y="${y}" fill="${css("ink")}" font-size="12">${escaped(name)}</text>`;
      x += length;
      return text;
    });
    const top = y + 10;
    source.setAttribute("y", top);
    source.setAttribute("width", width);
    source.setAttribute("height", height);
    const title = caption.map((line, at) => `<text x="8" y="${17 + 16 * at}" fill="${css("ink")}" font-size="13" font-weight="600">${escaped(line)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + top}" font-family="system-ui, sans-serif">` +
      `<rect width="100%" height="100%" fill="${css("paper")}"/>` +
      title.join("") + legend.join("") + new XMLSerializer().serializeToString(source) + "</svg>";
  }

  save(kind) {
    const svg = new Blob([this.svg()], { type: "image/svg+xml" });
    if (kind === "svg") { return download(svg, this.name() + ".svg"); }
    const image = new Image(), address = URL.createObjectURL(svg);
    image.onload = () => {
      const canvas = part("canvas"), scale = 2;
      canvas.width = image.width * scale;
      canvas.height = image.height * scale;
      const context = canvas.getContext("2d");
      context.scale(scale, scale);
      context.drawImage(image, 0, 0);
      canvas.toBlob((png) => download(png, this.name() + ".png"));
      URL.revokeObjectURL(address);
    };
    image.src = address;
  }
}

function key(number, name) {
  const entry = part("span", "key");
  entry.innerHTML = dot(number);
  entry.append(name);
  entry.dataset.look = number;
  return entry;
}

/** A variant's marker in a saved chart. */
function markerSvg(number, x, y) {
  const { type, shape } = marker(look(number), x, y, 5), fill = look(number).color;
  return type === "circle" ? `<circle cx="${x}" cy="${y}" r="${shape.r}" fill="${fill}"/>` : `<polygon points="${shape.points.join(" ")}" fill="${fill}"/>`;
}

export function part(name, className) {
  const element = document.createElement(name);
  if (className) { element.className = className; }
  return element;
}

export function button(text, label, act) {
  const element = part("button");
  element.type = "button";
  element.textContent = text;
  if (label) { element.setAttribute("aria-label", label); element.title = label; }
  element.addEventListener("click", act);
  return element;
}

export function download(blob, name) {
  const link = part("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
