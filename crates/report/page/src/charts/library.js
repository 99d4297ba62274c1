// Imports only the parts of ECharts that the charts use, to keep the bundle small.
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
