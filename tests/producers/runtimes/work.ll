; fib takes a third of the time, mix the most.  clock() tells its own time in us.
declare i64 @clock()
declare i32 @puts(ptr)
declare i64 @atol(ptr)
@true = constant [5 x i8] c"true\00"

define i64 @fib(i64 %n) noinline "frame-pointer"="all" {
entry:
  %small = icmp slt i64 %n, 2
  br i1 %small, label %done, label %more
more:
  %n1 = sub i64 %n, 1
  %n2 = sub i64 %n, 2
  %a = call i64 @fib(i64 %n1)
  %b = call i64 @fib(i64 %n2)
  %sum = add i64 %a, %b
  ret i64 %sum
done:
  ret i64 %n
}

define i64 @mix(i64 %n) noinline "frame-pointer"="all" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %state = phi i64 [ 1, %entry ], [ %mixed, %loop ]
  %shifted = lshr i64 %state, 7
  %crossed = xor i64 %shifted, %i
  %mixed = mul i64 %crossed, 6364136223846793005
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %mixed
}

define i32 @main(i32 %count, ptr %words) "frame-pointer"="all" {
entry:
  %second = getelementptr ptr, ptr %words, i64 1
  %word = load ptr, ptr %second
  %ms = call i64 @atol(ptr %word)
  %us = mul i64 %ms, 1000
  %begin = call i64 @clock()
  %end = add i64 %begin, %us
  br label %again
again:
  %f = call i64 @fib(i64 18)
  %m = call i64 @mix(i64 80000)
  %now = call i64 @clock()
  %more = icmp slt i64 %now, %end
  br i1 %more, label %again, label %done
done:
  %said = call i32 @puts(ptr @true)
  ret i32 0
}
