// The part of ECharts that the charts use, so that the bundle has no more of it.
import * as echarts from "echarts/core";
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent, DataZoomInsideComponent, GridComponent, MarkLineComponent, TooltipComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

echarts.use([
  AriaComponent, BarChart, CustomChart, DataZoomInsideComponent, GridComponent, LineChart, MarkLineComponent,
  ScatterChart, SVGRenderer, TooltipComponent,
]);

export { echarts };
