import { waitFor } from "preamp/testing";
import { Child, type ChildOptions } from "../../src/process/child_process.ts";
import { withLimits } from "../../src/process/system_limits.ts";
import { LateError, within } from "../../src/process/system_clock.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

/** Starts a shell script; `$$` is its process id. */
function script(text: string, more: Partial<ChildOptions> = {}) {
  return new Child({ command: "/bin/sh", args: ["-c", text], env: {}, limit: () => 1_000, ...more });
}

function isAlive(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}

/** Resolves when the child has written this much to stderr. */
async function stderrOf(child: { readonly stderr: string }, length = 1): Promise<string> {
  await waitFor(() => child.stderr.length >= length);
  return child.stderr;
}

Deno.test("a child has the given environment and no other variable", async () => {
  const child = script("env >&2", { env: { GIVEN: "1", PATH: "/usr/bin:/bin" } });
  await child.status;
  await stderrOf(child);
  await child.close();
  const names = child.stderr.trim().split("\n").map((line) => line.split("=")[0]);
  assertEquals(names.filter((name) => !["PWD", "_", "SHLVL", "OLDPWD"].includes(name!)).sort(), [
    "GIVEN",
    "PATH",
  ]);
});

for (
  const [what, limits] of [["within limits", { memory_mb: 512, cpu_s: 10 }], ["directly", undefined]] as const
) {
  Deno.test(`close() ends a child that was started ${what} with everything that it started`, async () => {
    const child = script("sleep 60 & echo $! $$ >&2; wait", {
      env: { PATH: "/usr/bin:/bin" },
      group: true,
      ...(limits ? { limits } : {}),
    });
    const pids = (await stderrOf(child)).trim().split(" ").map(Number);
    assertEquals(pids.map(isAlive), [true, true]);
    const { signal } = await child.close();
    assertEquals(signal, "SIGKILL");
    assert(await waitFor(() => !pids.some(isAlive)));
  });
}

Deno.test("a child that exits by itself takes what it started with it", async () => {
  const child = script("sleep 60 & echo $! >&2", { env: { PATH: "/usr/bin:/bin" }, group: true });
  const pid = Number(await stderrOf(child));
  assertEquals((await child.status).code, 0);
  assert(await waitFor(() => !isAlive(pid)));
  await child.close();
});

Deno.test("close() does not wait for a process that keeps the pipes of its child open", async () => {
  const child = script("sleep 300 & echo $! >&2", { env: { PATH: "/usr/bin:/bin" } });
  const pid = Number(await stderrOf(child));
  await child.close();
  Deno.kill(pid, "SIGKILL"); // throws if it has ended
});

for (const keep_stderr of ["start", "end"] as const) {
  Deno.test(`a child's stderr is kept up to a limit: its ${keep_stderr}`, async () => {
    const child = script("echo first >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; echo last >&2", {
      env: { PATH: "/usr/bin:/bin" },
      keep_stderr,
    });
    await child.status;
    await child.close();
    const { stderr } = child;
    assertEquals(stderr.length, 64 * 1024);
    assertEquals([stderr.startsWith("first\n"), stderr.endsWith("last\n")], [
      keep_stderr === "start",
      keep_stderr === "end",
    ]);
  });
}

Deno.test("next() gives null and write() rejects after the child has exited", async () => {
  const child = script("exit 3");
  assertEquals([await child.next(), (await child.status).code], [null, 3]);
  await assertRejects(async () => {
    for (;;) await child.write(new Uint8Array(1_000)); // the first ones may fit into the pipe
  });
  await child.close();
});

Deno.test("within() rejects when a promise is late, and not with its later failure", async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  await assertRejects(() => within(1, promise), LateError);
  reject(new Error("late"));
  assertEquals(await within(1_000, Promise.resolve(1)), 1);
});

Deno.test("withLimits() sets limits of data, processor time, files and their size", async () => {
  const program = {
    command: "/bin/sh",
    args: ["-c", "ulimit -c; ulimit -d; ulimit -t; ulimit -n; ulimit -f"],
  };
  const { command, args, detached } = withLimits(program, { memory_mb: 100, cpu_s: 7 }, true);
  const { stdout } = await new Deno.Command(command, { args: [...args] }).output();
  assertEquals(new TextDecoder().decode(stdout).trim().split("\n"), [
    "0",
    "1228800",
    "700",
    "512",
    "2097152",
  ]);
  assert(!detached || !args.some((word) => word.endsWith("setsid")));
});

Deno.test("within() of a child waits while it works or gets no processor, and ends when it is idle", async () => {
  const child = script(
    "while read line; do n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; echo x >&2; done",
  );
  await child.write(new TextEncoder().encode("begin\n"));
  await child.within(60_000, stderrOf(child));
  await assertRejects(() => child.within(200, new Promise(() => {})), LateError);
  await child.close();
});
