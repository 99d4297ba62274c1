// Ratios as dots with intervals on a logarithmic axis; far values are at the edge and labelled.
import {
  common, css, escaped, look, marker, nameAxis, nameRoom, placer, ROOM_ABOVE, ratioText, roomBelow, signed, tipLine, titleAbove, titleBelow, valueAxis, wrapped,
} from "./look.js";
import { commonRange, ratioMarks } from "./range.js";

const isDecided = (verdict) => !!verdict && verdict !== "undecided" && verdict !== "invalid";

/** One dot with its interval, or an arrow at the edge. */
function drawPoint(params, api, point, at) {
  const place = placer(params, api, point.row);
  const [x, end] = [(value) => place(Math.log(value)).x, place(Math.log(point.value)).x];
  const y = api.coord([0, point.row])[1] + at.offset;
  const log = Math.log(point.value), { side: far } = place(log);
  const children = [];
  if (point.low > 0 && point.high > 0) {
    const [from, to] = [x(point.low), x(point.high)];
    children.push({ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style: { stroke: at.color, lineWidth: 1.5 } });
  }
  const fill = isDecided(point.verdict) ? at.color : css("paper");
  const label = (text, beside, side) => children.push({
    type: "text",
    style: {
      text, x: beside, y, align: side > 0 ? "left" : "right", verticalAlign: "middle",
      fill: css("ink"), font: "11px system-ui, sans-serif", stroke: css("paper"), lineWidth: 3,
    },
  });
  if (!far && point.sign) {
    // A bound points to the side on which the true ratio lies. If that may be either side, it
    // points to both.
    const tips = { ">": [0, 8], "<": [8, 0] }[point.sign] || [6, 6];
    const points = [[end - tips[0], y], [end, y - 5], [end + tips[1], y], [end, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    // The label is on the side that has room.
    const side = log > 0 ? -1 : 1;
    label(signed(point.sign, ratioText(point.value)), end + side * 12, side);
  } else if (far) {
    const points = [[end - far * 8, y - 5], [end, y], [end - far * 8, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    label(signed(point.sign, ratioText(point.value)), end - far * 12, -far);
  } else {
    children.push(marker(at, end, y, 4.5, { fill, stroke: at.color, lineWidth: 1.6 }));
  }
  return { type: "group", children };
}

export function ratios(data, { names, hidden, width, choice, peers }) {
  const by = choice("Sort", ["sequence", "effect"]);
  const size = (row) => Math.max(0, ...data.points.filter((point) => point[0] === row && !hidden.has(point[1]))
    .map((point) => Math.log(point[2])));
  const order = data.rows.map((_, row) => row);
  if (by === "effect") { order.sort((a, b) => size(b) - size(a)); }
  const place = new Map(order.map((row, at) => [row, at]));
  const shown = data.variants.filter((variant) => !hidden.has(variant));
  const points = data.points.filter((point) => point[2] > 0 && !hidden.has(point[1])).map(
    ([row, variant, value, low, high, verdict, sign]) => ({ row: place.get(row), variant, value, low, high, verdict, sign }));
  const range = commonRange(peers());
  const gap = 11;
  const series = shown.map((variant, number) => {
    const of = points.filter((point) => point.variant === variant);
    const at = { ...look(variant), offset: (number - (shown.length - 1) / 2) * gap };
    return {
      type: "custom", name: names[variant], encode: { x: 0, y: 1 }, clip: false,
      data: of.map((point) => ({ value: [Math.log(point.value), point.row, point.value], point })),
      renderItem: (params, api) => drawPoint(params, api, of[params.dataIndex], at),
    };
  });
  const room = nameRoom(["step", ...data.rows], width);
  const lines = (row) => wrapped(data.rows[row], room).split("\n").length;
  const rowHeight = Math.max(22, shown.length * gap + 8, ...order.map((row) => lines(row) * 15 + 4));
  const length = width - room - 28;
  const marked = ratioMarks(Math.exp(range.low), Math.exp(range.high), Math.max(3, Math.floor(length / 48))).map(Math.log);
  const axis = valueAxis("", {
    min: range.low, max: range.high, ...titleBelow(`${data.of} ÷ ${data.of} of ${names[data.base]}`, length), axisLabel: {
      color: css("muted"), fontSize: 12, customValues: marked, hideOverlap: true,
      formatter: (value) => String(Number(Math.exp(value).toPrecision(4))),
    },
    axisTick: { customValues: marked, lineStyle: { color: css("line") } }, splitLine: { show: false },
  });
  if (series.length) {
    const line = (value, type) => ({ xAxis: Math.log(value), lineStyle: { color: css(type === "solid" ? "ink" : "muted"), type, width: 1 } });
    series[0].markLine = {
      silent: true, symbol: "none", label: { show: false }, animation: false, z: 1,
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
