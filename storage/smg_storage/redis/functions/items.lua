-- Items. An item lies with the thread of its id, with the set of the conversations that have it.
--
-- item:<id>  b packed, h digest, x end, n bytes of the document
-- refs:<id>  ids of conversations
-- loc:<id>   'side index thread response', of an item that is part of a response

local function item_key(a, item)
  return key(a, item.t, 'item', item.i)
end

local function clashes(a, item)
  local row = call('HMGET', item_key(a, item), 'h', 'x')
  return row[1] and not over(a, row[2]) and row[1] ~= item.h
end

local function keep(a, item)
  local k = item_key(a, item)
  if live(a, k) then
    return false
  end
  call('DEL', k, key(a, item.t, 'refs', item.i))
  call('HSET', k, 'b', a.v[item.b], 'h', item.h, 'x', item.x, 'n', item.n)
  lasts(a, k, item.x)
  count(a, item.x, 'i', 1, tonumber(item.n))
  return true
end

-- New rows of a call, as far as they are within reach.
local function items_refusal(a)
  for _, item in ipairs(a.items or {}) do
    if here(a, item.t) and clashes(a, item) then
      return no('clash', item.i)
    end
  end
  return nil
end

local function keep_items(a)
  for _, item in ipairs(a.items or {}) do
    if here(a, item.t) then
      keep(a, item)
    end
  end
end

local function refer(a, item, conversation)
  local x = call('HGET', item_key(a, item), 'x')
  local k = key(a, item.t, 'refs', item.i)
  call('SADD', k, conversation)
  lasts(a, k, x or '0')
end

-- An item that nothing has any more is forgotten: if it was in this conversation, or was made for it in vain.
local function unrefer(a, item, conversation)
  local k = key(a, item.t, 'refs', item.i)
  local was = call('SREM', k, conversation) == 1
  if (was or item.made) and not item.stays and call('EXISTS', k) == 0 then
    local row = call('HMGET', item_key(a, item), 'x', 'n')
    if row[1] then
      count(a, row[1], 'i', -1, -tonumber(row[2]))
      call('DEL', item_key(a, item))
    end
  end
end

function F.item_new(a)
  local item = a.item
  if clashes(a, item) then
    return no('clash', item.i)
  end
  keep(a, item)
  return { 'ok', call('HGET', item_key(a, item), 'b') }
end

-- Before a conversation of another slot has them: rows are made, or have to be there, and are held by it.
-- Which rows this makes, and which others it lets it hold, is answered, so that it can be taken back.
function F.items_prepare(a)
  local made, added, fresh = {}, {}, {}
  for _, item in ipairs(a.items) do
    if clashes(a, item) then
      return no('clash', item.i)
    end
  end
  for _, item in ipairs(a.items) do
    fresh[item.i] = not live(a, item_key(a, item)) and 'new' or 'old'
  end
  for _, link in ipairs(a.links) do
    if not fresh[link.i] and not live(a, item_key(a, link)) then
      return no('missing', link.i)
    end
  end
  for _, item in ipairs(a.items) do
    if keep(a, item) then
      made[#made + 1] = item.i
    end
  end
  for _, link in ipairs(a.links) do
    if call('SISMEMBER', key(a, link.t, 'refs', link.i), a.c) == 0 then
      refer(a, link, a.c)
      if fresh[link.i] ~= 'new' then
        added[#added + 1] = link.i
      end
    end
  end
  return { 'ok', made, added }
end

-- An item that `stays` was there before, and is not forgotten.
function F.items_unrefer(a)
  for _, item in ipairs(a.items) do
    unrefer(a, item, a.c)
  end
  return { 'ok' }
end

-- Where each item is: {'item', packed}, {'at', location, row of the response}, or {'loc', location} where the response
-- is in another slot, or has been sent with another item; {''} for one that is not there.
local function find(a, item)
  local kept = call('HMGET', item_key(a, item), 'b', 'x')
  if kept[1] and not over(a, kept[2]) then
    return { 'item', kept[1] }
  end
  local location = call('GET', key(a, item.t, 'loc', item.i))
  if not location then
    return { '' }
  end
  local thread, id = location:match('^%d %d+ (%x+) (.*)$')
  if not here(a, thread) then
    return { 'loc', location }
  end
  if a.sent[id] then
    return { 'loc', location }
  end
  local row = row_of(a, key(a, thread, 'resp', id))
  a.sent[id] = row
  return row and { 'at', location, row } or { '' }
end

function F.items_find(a)
  local found = {}
  a.sent = {}
  for number, item in ipairs(a.items) do
    found[number] = find(a, item)
  end
  return { 'ok', found }
end

-- Locations of items in a response; the first response that has an item is the one that is found.
local function locate(a, locations, thread, id, x)
  for _, place in ipairs(locations) do
    if here(a, place.t) then
      local k = key(a, place.t, 'loc', place.i)
      local location = place.s .. ' ' .. thread .. ' ' .. id
      call('SET', k, location, 'NX')
      if call('GET', k) == location then
        lasts(a, k, x)
      end
    end
  end
end

local function unlocate(a, locations, thread, id)
  for _, place in ipairs(locations) do
    if here(a, place.t) then
      local k = key(a, place.t, 'loc', place.i)
      local location = call('GET', k)
      if location and location:match('^%d %d+ (.*)$') == thread .. ' ' .. id then
        call('DEL', k)
      end
    end
  end
end

function F.locate(a)
  locate(a, a.locs, a.rt, a.id, a.x)
  return { 'ok' }
end

function F.unlocate(a)
  unlocate(a, a.locs, a.rt, a.id)
  return { 'ok' }
end
