# For gdb: run a program that stops by itself, and print "RUN_S BT_S AGAIN_S NAMED": seconds on the clock until it has stopped, for the
# first backtrace, for another after an instruction, and how many frames of the first have a name of JIT code.
import gdb, time


def took(command):
    began = time.time()
    text = gdb.execute(command, False, True)
    return time.time() - began, text


gdb.execute("set pagination off")
gdb.execute("set confirm off")
run, _ = took("run")
first, text = took("bt")
gdb.execute("stepi", False, True)
again, _ = took("bt")
print("%.3f %.4f %.4f %d" % (run, first, again, text.count("Class0.method_")))
gdb.execute("kill")
