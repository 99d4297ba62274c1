-- Other files of a script.
local host = ...

local LIBRARIES = { string = true, table = true, math = true, bit = true, io = true, os = true, debug = true, jit = true, ffi = true }
local loaded, preload = { _G = _G, coroutine = coroutine }, {}
package = { path = host.path, cpath = "", config = "/\n;\n?\n!\n-\n", loaded = loaded, preload = preload }

local function chunk(name, path)
   local run, found = host.chunk(name, path)
   return run or error(found, 0)
end

function require(name)
   if loaded[name] == nil and LIBRARIES[name] then loaded[name] = _G[name] end
   if loaded[name] ~= nil then return loaded[name] end
   local run, found, is_wrong = preload[name], nil, false
   if not run then run, found, is_wrong = host.chunk(name, package.path) end
   if is_wrong then error(found, 0) end
   if not run then
      error("module '" .. name .. "' not found:\n\tno field package.preload['" .. name .. "']\n\t" .. found, 2)
   end
   loaded[name] = true
   local value = run(name)
   if value ~= nil then loaded[name] = value end
   return loaded[name]
end

function dofile(path) return chunk(path, "")() end

function loadfile(path) return host.chunk(path, "") end

function module(name, ...)
   local own = type(loaded[name]) == "table" and loaded[name] or rawget(_G, name) or {}
   _G[name], loaded[name] = own, own
   own._M, own._NAME, own._PACKAGE = own, name, name:match("^(.*%.)") or ""
   for _, change in ipairs({ ... }) do change(own) end
   setfenv(2, own)
end

function package.seeall(own) setmetatable(own, { __index = _G }) end
