-- Functions of `string` that match patterns, as the manual of Lua 5.1 has them, on the host's matcher.
local host, patterns = ...

local type, select, error, tostring, unpack = type, select, error, tostring, unpack
local byte, sub, concat = string.byte, string.sub, table.concat
setmetatable(patterns, nil)

-- The place from which on a text is searched, from 1.
local function from_place(text, init)
   init = init or 1
   if init < 0 then init = init + #text + 1 end
   return init < 1 and 1 or init > #text + 1 and #text + 1 or init
end

function patterns.find(text, pattern, init, plain)
   local is_plain = plain or not string.find(pattern, "[%^%$%*%+%?%.%(%[%%%-]")
   return host.find(text, pattern, from_place(text, init), is_plain and true or false)
end

-- Captures, or the whole match where there are none.
local function caught(text, first, last, ...)
   if not first then return nil end
   if select("#", ...) == 0 then return sub(text, first, last) end
   return ...
end

function patterns.match(text, pattern, init)
   return caught(text, host.find(text, pattern, from_place(text, init), false))
end

function patterns.gmatch(text, pattern)
   local at = 1
   return function()
      if at > #text + 1 then return nil end
      local found = { host.find(text, pattern, at, false) }
      local first, last = found[1], found[2]
      if not first then
         at = #text + 2
         return nil
      end
      at = last < first and first + 1 or last + 1
      return caught(text, unpack(found))
   end
end

local function replacement(with, text, found)
   local whole = sub(text, found[1], found[2])
   local value
   if type(with) == "function" then
      value = with(caught(text, unpack(found)))
   elseif type(with) == "table" then
      value = with[(caught(text, unpack(found)))]
   else
      local captures = #found > 2 and { unpack(found, 3) } or { whole }
      return (string.gsub(tostring(with), "%%(.)", function(sign)
         if sign == "0" then return whole end
         local number = tonumber(sign)
         return number and (captures[number] or error("invalid capture index", 0)) or sign
      end))
   end
   if not value then return whole end
   if type(value) ~= "string" and type(value) ~= "number" then
      error("invalid replacement value (a " .. type(value) .. ")", 0)
   end
   return value
end

function patterns.gsub(text, pattern, with, most)
   local is_anchored = byte(pattern) == 94
   local parts, at, count = {}, 1, 0
   while count < (most or 1 / 0) do
      local found = { host.find(text, pattern, at, false) }
      local first, last = found[1], found[2]
      if not first then break end
      count = count + 1
      parts[#parts + 1] = sub(text, at, first - 1)
      parts[#parts + 1] = replacement(with, text, found)
      at = last + 1
      if last < first then
         if first > #text then
            at = first
            break
         end
         parts[#parts + 1] = sub(text, first, first)
         at = first + 1
      end
      if is_anchored then break end
   end
   parts[#parts + 1] = sub(text, at)
   return concat(parts), count
end
