select sum(case when (n * 7 + 3) % 11 > 4 and n % 13 <> 2 and (n + 5) % 17 < 15 then (n % 19 + n % 23) * 2 - 1 else n % 5 + (n % 29) * (n % 31) end) from numbers where n % 3 <> 1 or n % 37 > 3;
select sum(n % 41 + n % 43 + n % 47 + n % 53) from numbers where n % 7 > 2 and (n + 4) % 5 < 4 or (n + 3) % 59 < 40 and n % 61 > 1;
