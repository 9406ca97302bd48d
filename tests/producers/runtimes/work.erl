%% fib takes a third of the time, mix the most.
-module(work).
-export([start/1]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

mix(0, X) -> X;
mix(N, X) -> mix(N - 1, (X * 1103515 + N) band 16#ffffff).

%% Its own time, however busy the machine is.
start([Milliseconds]) ->
    {Ran, _} = statistics(runtime),
    again(Ran + list_to_integer(Milliseconds)),
    erlang:display(true),
    halt().

again(End) ->
    fib(16),
    mix(20000, 1),
    case statistics(runtime) of
        {Ran, _} when Ran < End -> again(End);
        _ -> done
    end.
