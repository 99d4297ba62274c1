// Ratios as dots with intervals on a logarithmic axis around 1; far values are cut at the edge and
// labelled.
import {
  common, css, escaped, look, nameAxis, nameRoom, ROOM_ABOVE, ratioText, roomBelow, signed, tipLine, titleAbove, titleBelow, valueAxis, wrapped,
} from "./look.js";

/**
 * How far the axis reaches from 1, as a logarithm. It includes most ratios with their intervals,
 * but not a few that are far away.
 */
function reach(points, margin) {
  const sizes = points.map((point) => Math.abs(Math.log(point.value))).sort((a, b) => a - b);
  const typical = sizes[Math.floor(0.75 * (sizes.length - 1))] || 0;
  const bound = Math.max(2.5 * typical, 3 * Math.log(1 + margin), 0.05);
  const shown = points.filter((point) => Math.abs(Math.log(point.value)) <= bound);
  const ends = shown.flatMap((point) => [point.value, point.low, point.high]).filter((value) => value > 0);
  const furthest = Math.max(Math.log(1 + margin) * 2, ...ends.map((value) => Math.abs(Math.log(value))));
  return Math.min(furthest * 1.08, bound * 1.25);
}

/** Marks of the axis: 1, and round numbers on both sides of it. */
function marks(bound) {
  const far = Math.exp(bound);
  const within = (values) => values.filter((value) => value > 0 && Math.abs(Math.log(value)) <= bound).map(Math.log);
  if (far > 3) {
    const steps = far > 30 ? [1] : [1, 2, 5], above = [];
    for (let power = 1; power <= far; power *= 10) { above.push(...steps.map((step) => step * power).filter((mark) => mark > 1)); }
    return within([...above.map((mark) => 1 / mark).reverse(), 1, ...above]);
  }
  if (far > 1.6) { return within([0.35, 0.5, 0.7, 1, 1.4, 2, 2.8]); }
  const step = [0.01, 0.02, 0.05, 0.1].find((step) => (far - 1) / step <= 4) || 0.2;
  return within([-4, -3, -2, -1, 0, 1, 2, 3, 4].map((number) => 1 + number * step));
}

const isDecided = (verdict) => !!verdict && verdict !== "undecided" && verdict !== "invalid";

/** One dot with its interval, or an arrow at the edge. */
function drawPoint(api, point, at, bound) {
  const x = (value) => api.coord([Math.max(-bound, Math.min(bound, Math.log(value))), point.row])[0];
  const centre = api.coord([0, point.row])[1];
  const y = centre + at.offset;
  const log = Math.log(point.value);
  const children = [];
  if (point.low > 0 && point.high > 0) {
    const [from, to] = [x(point.low), x(point.high)];
    children.push({ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style: { stroke: at.color, lineWidth: 1.5 } });
  }
  const isFar = Math.abs(log) > bound;
  const fill = isDecided(point.verdict) ? at.color : css("paper");
  const label = (text, beside, side) => children.push({
    type: "text",
    style: {
      text, x: beside, y, align: side > 0 ? "left" : "right", verticalAlign: "middle",
      fill: css("ink"), font: "11px system-ui, sans-serif", stroke: css("paper"), lineWidth: 3,
    },
  });
  if (!isFar && point.sign) {
    // A bound points to the side on which the true ratio lies. If that may be either side, it
    // points to both.
    const end = x(point.value), tips = { ">": [0, 8], "<": [8, 0] }[point.sign] || [6, 6];
    const points = [[end - tips[0], y], [end, y - 5], [end + tips[1], y], [end, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    // The label is on the side that has room.
    const side = log > 0 ? -1 : 1;
    label(signed(point.sign, ratioText(point.value)), end + side * 12, side);
  } else if (isFar) {
    const side = Math.sign(log), edge = x(point.value);
    const points = [[edge, y - 5], [edge + side * 8, y], [edge, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    label(signed(point.sign, ratioText(point.value)), edge - side * 6, -side);
  } else {
    children.push({ type: "circle", shape: { cx: x(point.value), cy: y, r: 4.5 }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
  }
  return { type: "group", children };
}

export function ratios(data, { names, hidden, width, choice }) {
  const by = choice("Sort", ["sequence", "effect"]);
  const size = (row) => Math.max(0, ...data.points.filter((point) => point[0] === row && !hidden.has(point[1]))
    .map((point) => Math.log(point[2])));
  const order = data.rows.map((_, row) => row);
  if (by === "effect") { order.sort((a, b) => size(b) - size(a)); }
  const place = new Map(order.map((row, at) => [row, at]));
  const shown = data.variants.filter((variant) => !hidden.has(variant));
  const points = data.points.filter((point) => point[2] > 0 && !hidden.has(point[1])).map(
    ([row, variant, value, low, high, verdict, sign]) => ({ row: place.get(row), variant, value, low, high, verdict, sign }));
  const bound = reach(points, data.margin);
  const gap = 11;
  const series = shown.map((variant, number) => {
    const of = points.filter((point) => point.variant === variant);
    const at = { color: look(variant).color, offset: (number - (shown.length - 1) / 2) * gap };
    return {
      type: "custom", name: names[variant], encode: { x: 0, y: 1 }, clip: false,
      data: of.map((point) => ({ value: [Math.log(point.value), point.row, point.value], point })),
      renderItem: (params, api) => drawPoint(api, of[params.dataIndex], at, bound),
    };
  });
  const room = nameRoom(["step", ...data.rows], width);
  const lines = (row) => wrapped(data.rows[row], room).split("\n").length;
  const rowHeight = Math.max(22, shown.length * gap + 8, ...order.map((row) => lines(row) * 15 + 4));
  const marked = marks(bound);
  const axis = valueAxis("", {
    min: -bound, max: bound, ...titleBelow(`${data.of} ÷ ${data.of} of ${names[data.base]}`, width - room - 28), axisLabel: {
      color: css("muted"), fontSize: 12, customValues: marked, hideOverlap: true,
      formatter: (value) => ratioText(Math.exp(value)),
    },
    axisTick: { customValues: marked, lineStyle: { color: css("line") } }, splitLine: { show: false },
  });
  if (series.length) {
    const line = (value, type) => ({ xAxis: Math.log(value), lineStyle: { color: css(type === "solid" ? "ink" : "muted"), type, width: 1 } });
    series[0].markLine = {
      silent: true, symbol: "none", label: { show: false }, animation: false,
      data: [line(1, "solid"), line(1 + data.margin, "dashed"), line(1 / (1 + data.margin), "dashed")],
    };
  }
  return {
    height: data.rows.length * rowHeight + ROOM_ABOVE + roomBelow(axis),
    zoom: { xAxisIndex: 0 },
    option: {
      ...common(),
      grid: { left: room + 10, right: 18, top: ROOM_ABOVE, bottom: roomBelow(axis) },
      xAxis: axis,
      yAxis: nameAxis(order.map((row) => data.rows[row]), room, {
        inverse: true, ...titleAbove("step"), splitLine: { show: true, lineStyle: { color: css("line") } },
      }),
      tooltip: { ...common().tooltip, trigger: "item", formatter: (item) => {
        const { point } = item.data;
        const interval = point.low > 0 ? ` (95 % interval ${ratioText(point.low)} to ${ratioText(point.high)})` : "";
        const verdict = point.verdict ? `, ${point.verdict}` : "";
        return `<b>${escaped(data.rows[order[point.row]])}</b>` +
          tipLine(point.variant, names[point.variant], signed(point.sign, point.value.toFixed(4)) + interval + verdict);
      } },
      series,
    },
    said: points.map((point) => `${data.rows[order[point.row]]}, ${names[point.variant]}: ${signed(point.sign, ratioText(point.value))} ${point.verdict || ""}`),
  };
}
