# fib and mix take most of the time.
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def mix(n):
    x = 1
    for i in range(n):
        x = (x * 1103515245 + i) & 0x7FFFFFFF
    return x


def work():
    while time.process_time() * 1000 < int(sys.argv[1]):  # its own time, however busy the machine is
        fib(12)
        mix(2000)


work()
print("true")
