-- What all functions share. Nothing here may be global, and nothing calls the server while it is loaded.
--
-- `a` are the arguments of a call: `b` the front of every key of the tenant, `g` the thread of the slot that is
-- asked, `now` in microseconds, `alone` whether every key is within reach (no cluster), `v` what is binary.
-- An answer is {'ok', ...}, {'none'} or {'no', why, what}. Times and sizes are kept as decimal text.

local F = {}
local GRACE_MS = 60000 -- between the time at which something is over, by the caller's clock, and its end here
local LINKS_MAX = 100000
local DAY_US = 86400000000
local FINAL = { completed = true, incomplete = true, failed = true, cancelled = true }
local ROW = { 's', 'd', 'x', 'v', 'o', 'k', 'u', 'q', 'f', 'i', 'r' }

local function call(...)
  return redis.call(...)
end

local function key(a, thread, kind, id)
  return a.b .. '{' .. thread .. '}:' .. kind .. ':' .. id
end

local function here(a, thread)
  return a.alone or thread == a.g
end

local function over(a, x)
  local us = tonumber(x)
  return us > 0 and us <= a.now
end

-- Whether a hash is there and not over: each one has its end in field `x`, '0' for none.
local function live(a, k)
  local x = call('HGET', k, 'x')
  return x and not over(a, x)
end

-- A response as it is answered, or nil.
local function row_of(a, k)
  local row = call('HMGET', k, unpack(ROW))
  if not row[3] or over(a, row[3]) then
    return nil
  end
  return row
end

local function span_ms(a, x)
  return math.max(1, math.ceil((tonumber(x) - a.now) / 1000) + GRACE_MS)
end

local function lasts(a, k, x)
  if tonumber(x) == 0 then
    call('PERSIST', k)
  else
    call('PEXPIRE', k, span_ms(a, x))
  end
end

-- The same for what many share: it lasts as long as the last of them. `left_ms` is its PTTL of before.
local function lasts_longest(a, k, x, left_ms)
  if tonumber(x) == 0 then
    call('PERSIST', k)
  elseif left_ms ~= -1 and span_ms(a, x) > left_ms then
    call('PEXPIRE', k, span_ms(a, x))
  end
end

-- How much a tenant has is in one hash, by the day on which it is over: what goes by itself is then not counted any
-- more from the end of that day on. 'day what' -> how many, of c conversations, i items, r responses, and b bytes of
-- documents; day 0 is never. In a cluster it would lie in another slot than what is counted, so nothing is.
local function count(a, x, what, rows, bytes)
  if not a.alone then
    return
  end
  local day = math.ceil(tonumber(x) / DAY_US)
  for field, more in pairs({ [day .. ' ' .. what] = rows, [day .. ' b'] = bytes }) do
    a.sums[field] = (a.sums[field] or 0) + more
  end
  a.furthest = (day == 0 or a.furthest == 0) and 0 or math.max(day, a.furthest or day)
end

local function keep_counts(a)
  local k = a.b .. 'used'
  local left_ms = call('PTTL', k)
  for field, more in pairs(a.sums) do
    if more ~= 0 and call('HINCRBY', k, field, more) == 0 then
      call('HDEL', k, field)
    end
  end
  lasts_longest(a, k, a.furthest * DAY_US, left_ms)
end

-- Many texts as one: their lengths, a line's end, themselves. Readers take much longer for a list of as many.
local function bundle(texts)
  local sizes = {}
  for number, text in ipairs(texts) do
    sizes[number] = #text
  end
  return table.concat(sizes, ' ') .. '\n' .. table.concat(texts)
end

local function no(why, what)
  return { 'no', why, what or '' }
end
