-- Options of a script, and what it offers: asked for once, and dropped.
local opt, format = sysbench.opt, string.format

local function truth(value)
   if type(value) == "boolean" then return value end
   local words = { on = true, ["true"] = true, ["1"] = true, [""] = true, off = false, ["false"] = false, ["0"] = false }
   return words[tostring(value):lower()]
end

local function size(value)
   local digits, unit = tostring(value):match("^%s*(-?[%d.]+)%s*([KMGTkmgt]?)[Bb]?%s*$")
   local power = digits and ({ [""] = 0, k = 1, m = 2, g = 3, t = 4 })[unit:lower()]
   local number = tonumber(digits)
   return number and number * 1024 ^ power
end

local function list(value)
   if type(value) == "table" then return value end
   local items = {}
   for item in tostring(value):gmatch("[^,]+") do items[#items + 1] = item end
   return items
end

local function kind_of(definition)
   local kind, default = definition[3], definition[2]
   if kind then return kind end
   local kinds = { boolean = "BOOL", number = "DOUBLE", table = "LIST" }
   return kinds[type(default)] or "STRING"
end

-- `value` as the option's type; nil and what was wanted where it is none.
local function typed(definition, value)
   local kind, result = kind_of(definition), nil
   if kind == "BOOL" then
      result = truth(value)
      if result == nil then return nil, "on or off" end
   elseif kind == "INT" or kind == "SIZE" or kind == "DOUBLE" then
      result = size(value)
      if not result then return nil, "a number" end
      if kind ~= "DOUBLE" then result = result - result % 1 end
   elseif kind == "LIST" then
      result = list(value)
   else
      result = type(value) == "table" and table.concat(value, ",") or tostring(value)
   end
   if type(definition[4]) == "function" then
      local ok, checked = pcall(definition[4], result)
      if not ok then return nil, tostring(checked) end
      if checked ~= nil then result = checked end
   end
   return result
end

local function declared()
   local options = sysbench.cmdline.options
   return type(options) == "table" and options or {}
end

local function underscored(name) return (tostring(name):gsub("-", "_")) end

-- Sets the options; returns what is wrong with one of `given`, by name.
local function set_options(builtin, given)
   local options, is_known = {}, next(declared()) ~= nil
   for name, definition in pairs(declared()) do
      if type(definition) ~= "table" then definition = { tostring(definition) } end
      options[underscored(name)] = definition
   end
   for name, value in pairs(builtin) do opt[name] = value end
   for name, definition in pairs(options) do
      if opt[name] == nil then
         local default = definition[2]
         if default ~= nil then opt[name] = typed(definition, default) end
      end
   end
   for name, value in pairs(given) do
      name = underscored(name)
      local definition = options[name]
      if definition then
         local result, wanted = typed(definition, value)
         if result == nil then return name, format("%s is %s, but must be %s", name, tostring(value), wanted) end
         opt[name] = result
      elseif is_known then
         return name, "the script has no option " .. name
      else
         -- Scripts of before 1.0 declare nothing, and read texts.
         opt[name] = type(value) == "table" and table.concat(value, ",") or type(value) == "boolean" and (value and "on" or "off") or tostring(value)
      end
   end
end

-- What the script offers: its options with descriptions and defaults, and its commands.
local function offers()
   local options, commands = {}, {}
   for name, definition in pairs(declared()) do
      local default = definition[2]
      if type(default) == "table" then default = table.concat(default, ",") end
      if type(default) == "boolean" then default = default and "on" or "off" end
      options[#options + 1] = {
         underscored(name), tostring(definition[1] or ""), kind_of(definition), default ~= nil and tostring(default) or nil,
      }
   end
   table.sort(options, function(a, b) return a[1] < b[1] end)
   for _, name in ipairs({ "prepare", "cleanup", "help" }) do
      if type(rawget(_G, name)) == "function" then commands[name] = false end
   end
   if type(rawget(_G, "event")) == "function" or type(rawget(_G, "thread_run")) == "function" then commands.run = true end
   for name, entry in pairs(type(sysbench.cmdline.commands) == "table" and sysbench.cmdline.commands or {}) do
      commands[name] = type(entry) == "table" and entry[2] ~= nil and entry[2] ~= false
   end
   return options, commands
end

return set_options, offers
