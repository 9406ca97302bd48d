-- Something to compile: root and side traces, spilled registers, and traces that are thrown away and made again.
local function sieve(n)
    local composite, count = {}, 0
    for i = 2, n do
        if not composite[i] then
            count = count + 1
            for j = i * 2, n, i do composite[j] = true end
        end
    end
    return count
end

local function collatz(n)
    local steps = 0
    while n ~= 1 do
        n = n % 2 == 0 and n / 2 or 3 * n + 1
        steps = steps + 1
    end
    return steps
end

local function many_values(n)
    local a, b, c, d, e, f, g, h = 1.1, 2.2, 3.3, 4.4, 5.5, 6.6, 7.7, 8.8
    local i, j, k, l, m, o, p, q = 1.2, 2.3, 3.4, 4.5, 5.6, 6.7, 7.8, 8.9
    for x = 1, n do
        a, b, c, d, e, f, g, h = a + b * x, b + c, c + d, d + e, e + f, f + g, g + h, h + i
        i, j, k, l, m, o, p, q = i + j, j + k, k + l, l + m, m + o, o + p, p + q, q * 0.99 + a * 1e-9
        if x % 7 == 3 then a, e, o = a * 0.5, e * 0.25, o * 0.5 end
    end
    return a + b + c + d + e + f + g + h + i + j + k + l + m + o + p + q
end

local seconds = tonumber(arg and arg[1]) or 1.5
local stop, rounds, total = os.clock() + seconds, 0, 0
while os.clock() < stop do
    total = total + sieve(5000) + many_values(20000)
    for n = 1, 300 do total = total + collatz(n) end
    rounds = rounds + 1
    if rounds % 50 == 0 then jit.flush() end
end
print(total > 0)
