import type { JsonObject } from "preamp";
import { TestCoordinator, waitFor } from "preamp/testing";
import * as bash from "../../modules/tool-bash/mod.ts";
import { RunningCommand } from "../../modules/tool-bash/process.ts";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

interface Shell {
  readonly folder: string;
  readonly coordinator: TestCoordinator;
  /** Resolves to the text of a result, after `!` when it is a failure. `output` gets what is shown. */
  call(
    tool: string,
    input: JsonObject,
    signal?: AbortSignal,
    output?: (text: string, stream?: string) => void,
  ): Promise<string>;
}

async function withShell(
  use: (shell: Shell) => Promise<void>,
  run: string[] | true = ["bash"],
  config: JsonObject = {},
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const coordinator = new TestCoordinator({ permissions: { read: [folder], run } });
  await bash.mount(coordinator, config);
  await filesystem.mount(coordinator, {});
  try {
    await use({
      folder,
      coordinator,
      call: async (name, input, signal = new AbortController().signal, output = () => {}) => {
        const context = { id: "c", signal, session_id: "s", progress: () => {}, output };
        const result = await coordinator.tools[name]!.execute(input, context) as
          | string
          | { output: string | null; error: { message: string } };
        return typeof result === "string" ? result : `!${result.output ?? result.error.message}`;
      },
    });
  } finally {
    const { failed } = await coordinator.cleanup();
    assertEquals(failed, []);
  }
}

/** Returns whether a process exists and has not ended. */
async function isAlive(pid: string): Promise<boolean> {
  const stat = await Deno.readTextFile(`/proc/${pid.trim()}/stat`).catch(() => null);
  return stat !== null && !/\) [ZX] /.test(stat);
}

/** Resolves when a process has ended. */
async function ended(pid: string): Promise<void> {
  assert(await waitFor(async () => !await isAlive(pid)), `${pid} is alive`);
}

Deno.test("bash runs a command in the folder, with both streams in order and its exit code", () =>
  withShell(async ({ folder, call }) => {
    assertEquals(await call("bash", { command: "pwd" }), `${folder}\n(exit code 0)`);
    assertEquals(
      await call("bash", { command: "echo a; echo b >&2; printf c; exit 3" }),
      "!a\nb\nc\n(exit code 3)",
    );
    assertEquals(await call("bash", { command: "cat" }), "(exit code 0)"); // its input is empty
    assertMatch(await call("bash", { command: "nonsense_program" }), /^!.*not found\n\(exit code 127\)$/);
    assertEquals(
      await call("bash", { command: "printf '\\033[31mred\\033[0m\\n10%%\\r20%%\\n'" }),
      "red\n20%\n[progress: 1 earlier state left out; read output:5 to see all]\n(exit code 0)",
    );
  }));

Deno.test("commands get no variable of this process that could be a secret", () =>
  withShell(
    async ({ call }) => {
      Deno.env.set("A_TEST_API_KEY", "secret-value");
      try {
        const env = await call("bash", { command: "env" });
        assertStringIncludes(env, "PATH=");
        assert(!env.includes("secret-value"));
        assertStringIncludes(env, "CI=1\n");
      } finally {
        Deno.env.delete("A_TEST_API_KEY");
      }
    },
    ["bash"],
    { env: { CI: "1" } },
  ));

Deno.test("commands end when the program exits in the middle of a run", async () => {
  const module = new URL("../../modules/tool-bash/process.ts", import.meta.url).href;
  const code = `
    import { RunningCommand } from ${JSON.stringify(module)};
    const { PATH } = Deno.env.toObject();
    const running = new RunningCommand({
      path: "bash", args: ["-c", "sleep 300 & echo $! $$; wait"], cwd: "/", env: { PATH },
      has_input: false, max_output_bytes: 1000, shell: "bash",
    });
    while (running.output.length === 0) await Deno.stat("/");
    console.log(running.output.unread("it").trim());
    Deno.exit(0);`;
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["eval", "--no-check", code] }).output();
  const pids = new TextDecoder().decode(stdout).trim().split(" ");
  assertEquals(pids.length, 2);
  for (const pid of pids) await ended(pid);
});

Deno.test("a long output is cut in the middle, and read opens all of it by the name in the result", () =>
  withShell(async ({ call }) => {
    const result = await call("bash", { command: "for ((i = 1; i <= 20000; i++)); do echo line $i; done" });
    assert(result.length < 52_000);
    assertStringIncludes(result, "line 1\n");
    assertStringIncludes(result, "line 20000\n(exit code 0)");
    const name = /read (output:\d+) to see them/.exec(result)?.[1];
    assertEquals(
      await call("read", { path: name!, offset: 10_000, limit: 1 }),
      " 10000\tline 10000\n(lines 10000-10000 of 20000; continue with offset 10001)",
    );
    assertStringIncludes(await call("read", { path: "output:99" }), "!output:99 is not kept");
  }));

Deno.test("an endless output is kept up to its limit, and its end is shown", () =>
  withShell(
    async ({ call, coordinator }) => {
      const result = await call("bash", {
        command: "head -c 3000000 /dev/zero | tr '\\0' a; echo; echo end",
      });
      assertStringIncludes(result, "aaa\nend\n(exit code 0)");
      assert(result.length < 52_000);
      const read = coordinator.getCapability("tool-bash.output") as (name: string, from: number) => unknown;
      assertEquals((read("output:1", 0) as { bytes: number }).bytes, 65_536);
      assertEquals([read("output:1", -1), read("x", 0)], [null, null]);
    },
    ["bash"],
    { max_output_bytes: 65_536 },
  ));

Deno.test("a command ends when its program exits; what it left behind is stopped", () =>
  withShell(async ({ call, folder }) => {
    const result = await call("bash", { command: "(sleep 300; touch late) & echo $! > pid; echo done" });
    assertStringIncludes(result, "done\n(exit code 0; still running, so stopped with it: ");
    await ended(await Deno.readTextFile(`${folder}/pid`));
    await assertRejects(() => Deno.stat(`${folder}/late`), Deno.errors.NotFound); // the call did not wait for it
  }));

Deno.test("all that is still running is named, and a command that failed says it too", () =>
  withShell(async ({ call }) => {
    const command = "(exec -a one sleep 300) & sleep 301 & sleep 302 & sleep 303 & true & " +
      'until [ "$(pgrep -cg $$ sleep)" = 4 ]; do :; done; exit 3';
    const result = await call("bash", { command });
    assertMatch(
      result,
      /^!\(exit code 3; still running, so stopped with it: (?:\S+ 30\d, ){2}\S+ 30\d and 1 more;/,
    );
    assertEquals(await call("bash", { command: "sleep 0 & wait; echo done" }), "done\n(exit code 0)");
  }));

Deno.test("a command ends and names a program that it left, also where its shell cannot be started again", async () => {
  const command = new RunningCommand({
    path: "bash",
    args: ["-c", "sleep 60 & true"],
    cwd: "/",
    env: { PATH: Deno.env.get("PATH")! },
    has_input: false,
    max_output_bytes: 1_000,
    shell: "/nowhere/bash",
  });
  assertEquals(await command.ended, { exit_code: 0, stopped: null, left: ["a program"] });
});

Deno.test("a command that leaves its group and holds the output does not hold the call", () =>
  withShell(async ({ call, folder }) => {
    const result = await call("bash", { command: "setsid sleep 300 & echo $! > pid; sleep 0.1; echo done" });
    assertEquals(result, "done\n(exit code 0)");
    const out = await new Deno.Command("pkill", {
      args: ["-s", (await Deno.readTextFile(`${folder}/pid`)).trim()],
    })
      .output();
    assert(out.code <= 1);
  }));

Deno.test("a command that takes too long is stopped with all that it started, even if it ignores it", () =>
  withShell(async ({ call, folder }) => {
    const command = "trap '' TERM; (trap '' TERM; sleep 300) & echo $! > pid; echo begin; sleep 300";
    const result = await call("bash", { command, timeout_s: 0.2 });
    assertEquals(result, "!begin\n(stopped, because it took more than 0.2 s; exit code 137)");
    await ended(await Deno.readTextFile(`${folder}/pid`));
  }));

Deno.test("a model's time is within that of the config, and a very long one does not stop a command at once", () =>
  withShell(
    async ({ call }) => {
      const result = await call("bash", { command: "echo begin; sleep 300", timeout_s: 3_600_000 });
      assertEquals(result, "!begin\n(stopped, because it took more than 0.2 s; exit code 143)");
      await call("bash", { command: "read line; echo $line", background: true, timeout_s: 3_600_000 });
      assertEquals(await call("job", { id: "2", action: "write", input: "end\n" }), "end\n(exit code 0)");
    },
    ["bash"],
    { timeout_s: 0.2 },
  ));

Deno.test("people see what a command writes before it has ended, and what a job writes while it is waited for", () =>
  withShell(async ({ folder, call }) => {
    let seen = "";
    const output = (text: string) => void (seen += text);
    const command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two >&2";
    const result = call("bash", { command }, undefined, output);
    assert(await waitFor(() => Promise.resolve(seen === "one\n")), seen);
    await Deno.writeTextFile(`${folder}/go`, "");
    assertEquals([await result, seen], ["one\ntwo\n(exit code 0)", "one\ntwo\n"]);
    await call("bash", { command: "read line; echo $line", background: true });
    await call("job", { id: "2", action: "write", input: "three\n" }, undefined, output);
    assertEquals(seen, "one\ntwo\nthree\n");
  }));

Deno.test("a long command becomes a job that is polled, and a job in the background can be written to", () =>
  withShell(
    async ({ call }) => {
      const first = await call("bash", {
        command: "echo one; sleep 0.6; echo two",
      });
      assertMatch(first, /^one\n\(still running as job 1:/);
      let rest = "";
      for (let polls = 0; polls < 100 && !rest.includes("exit code"); polls++) {
        const polled = await call("job", { id: "1", action: "poll" });
        rest += polled.replace(/\(still running as job 1: [^()]*\)$/, ""); // also between its output and its end
      }
      assertMatch(rest, /two\n\(exit code 0\)$/);
      assertEquals(await call("job", { id: "1", action: "poll" }), "(exit code 0)");
      assertStringIncludes(await call("job", { id: "1", action: "write", input: "x" }), "!Job 1 has ended");

      assertStringIncludes(await call("bash", { command: "cat", background: true }), "running as job 2");
      assertStringIncludes(await call("job", { id: "2", action: "write", input: "hello\n" }), "hello\n");
      assertEquals(await call("job", { id: "2", action: "write", input: "" }), "(exit code 0)");
      assertEquals(await call("job", { id: "9", action: "poll" }), "!There is no job 9; jobs: 1, 2");
    },
    ["bash"],
    { yield_s: 0.3 },
  ));

Deno.test("a job is stopped on request, and jobs without input say so", () =>
  withShell(
    async ({ call }) => {
      await call("bash", { command: "sleep 300" });
      assertStringIncludes(
        await call("job", { id: "1", action: "write", input: "x" }),
        "!Job 1 cannot be written to",
      );
      let text = await call("job", { id: "1", action: "stop" });
      if (text.includes("still running")) text = await call("job", { id: "1", action: "poll" });
      assertEquals(text, "!(stopped, because it was stopped; exit code 143)");
    },
    ["bash"],
    { yield_s: 0.2 },
  ));

Deno.test("jobs end with the run, and more than max_jobs are refused", async () => {
  let pids = "";
  await withShell(
    async ({ call, folder }) => {
      await call("bash", { command: "echo $$ >> pids; sleep 300 & echo $! >> pids; wait", background: true });
      assertStringIncludes(
        await call("bash", { command: "true" }),
        "!1 commands are running: stop a job first",
      );
      while (pids.trim().split("\n").length < 2) {
        pids = await Deno.readTextFile(`${folder}/pids`).catch(() => "");
      }
    },
    ["bash"],
    { max_jobs: 1 },
  );
  for (const pid of pids.trim().split("\n")) await ended(pid);
});

Deno.test("a cancelled call stops its command", () =>
  withShell(async ({ call, folder }) => {
    const stop = new AbortController();
    const calling = call("bash", { command: "echo $$ > pid; sleep 300" }, stop.signal);
    let pid = "";
    while (pid === "") pid = await Deno.readTextFile(`${folder}/pid`).catch(() => "");
    stop.abort();
    assertStringIncludes(await calling, "the call was cancelled");
    await ended(pid);
  }));

Deno.test("without a shell in the grant, commands are started directly and all else is refused", () =>
  withShell(async ({ call, folder }) => {
    await Deno.writeTextFile(`${folder}/a b.txt`, "text");
    assertEquals(await call("bash", { command: "cat 'a b.txt'" }), "text\n(exit code 0)");
    assertEquals(await call("bash", { command: "echo '$HOME;' \"*\" --" }), "$HOME; * --\n(exit code 0)");
    const shell = [
      "cat a; rm b",
      "cat $HOME",
      "cat *",
      "cat `x`",
      "cat > a",
      "cat &",
      "X=1 cat",
      "cat 'a",
      "~/cat",
    ];
    for (const command of shell) {
      assertMatch(
        await call("bash", { command }),
        /^!The command needs a shell/,
        command,
      );
    }
    for (const command of ["rm x", "/bin/cat x", "./cat x", "bash -c x", "CAT x"]) {
      assertStringIncludes(await call("bash", { command }), "Programs: cat, echo", command);
    }
    assertEquals(await Array.fromAsync(Deno.readDir(folder), ({ name }) => name), ["a b.txt"]);
  }, ["cat", "echo"]));

Deno.test("the module does not mount without a program, or a folder", async () => {
  const mounting = (permissions: JsonObject, config: JsonObject = {}) => async () => {
    await bash.mount(new TestCoordinator({ permissions }), config);
  };
  await assertRejects(mounting({ run: ["git"] }, { root: "/srv", env: { A: 1 } }), Error, "env.A");
  await assertRejects(mounting({ read: ["/srv"] }), Error, "grants it no program");
  await assertRejects(mounting({ run: ["git"] }), Error, "no folder to start in");
  await mounting({ run: ["git"] }, { root: "/srv" })();
});
