-- Ready-made reports, and histograms.
local host, api = ...

setmetatable(sysbench, nil)
local format, floor, opt = string.format, math.floor, sysbench.opt

local function per_second(stat, count) return stat.time_interval > 0 and count / stat.time_interval or 0 end

function sysbench.report_default(stat)
   local queries = stat.reads + stat.writes + stat.other
   print(format("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      opt.percentile or 95, stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

function sysbench.report_csv(stat)
   local queries = stat.reads + stat.writes + stat.other
   print(format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

local has_json = false
function sysbench.report_json(stat)
   local queries = stat.reads + stat.writes + stat.other
   io.write(has_json and ",\n" or "[\n")
   has_json = true
   io.write(format('  {\n    "time": %4.0f,\n    "threads": %u,\n    "tps": %4.2f,\n    "qps": {\n      "total": %4.2f,\n      "reads": %4.2f,\n' ..
      '      "writes": %4.2f,\n      "other": %4.2f\n    },\n    "latency": %4.2f,\n    "errors": %4.2f,\n    "reconnects": %4.2f\n  }',
      stat.time_total, stat.threads_running, per_second(stat, stat.events), per_second(stat, queries),
      per_second(stat, stat.reads), per_second(stat, stat.writes), per_second(stat, stat.other),
      stat.latency_pct * 1000, per_second(stat, stat.errors), per_second(stat, stat.reconnects)))
end

function api.report_end()
   if has_json then io.write("\n]\n") end
end

sysbench.histogram = {}
local Histogram = {}
Histogram.__index = Histogram

function sysbench.histogram.new(size, least, greatest)
   if size < 2 or least <= 0 or greatest <= least then error("a histogram has 2 or more buckets between 0 < least < greatest", 2) end
   local step = (math.log(greatest) - math.log(least)) / (size - 1)
   return setmetatable({ size = size, least = least, step = step, counts = {} }, Histogram)
end

function Histogram:update(value)
   local bucket = value <= 0 and 0 or floor((math.log(value) - math.log(self.least)) / self.step + 0.5)
   bucket = math.max(0, math.min(self.size - 1, bucket))
   self.counts[bucket] = (self.counts[bucket] or 0) + 1
end

function Histogram:print()
   local most = 0
   for _, count in pairs(self.counts) do most = math.max(most, count) end
   print("       value  ------------- distribution ------------- count")
   for bucket = 0, self.size - 1 do
      local count = self.counts[bucket]
      if count then
         local stars = string.rep("*", floor(count / most * 40 + 0.5))
         print(format("%12.3f |%-40s %d", self.least * math.exp(bucket * self.step), stars, count))
      end
   end
end
