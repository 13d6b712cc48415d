/** Completion as the shells do it: each script is sourced in its shell, where that shell is installed. */
import { cli } from "../../../src/cli/mod.ts";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

const installed = async (shell: string): Promise<boolean> => {
  try {
    return (await new Deno.Command(shell, { args: ["-c", "exit 0"], stderr: "null" }).output()).success;
  } catch {
    return false;
  }
};
const [HAS_BASH, HAS_ZSH, HAS_FISH] = await Promise.all(["bash", "zsh", "fish"].map(installed));

/** Runs commands of a shell behind its completion script; resolves to what they print. */
async function inShell(shell: string, commands: string): Promise<string> {
  const io = fakeIo();
  assertEquals(await cli(["completion", shell], io), 0);
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, io.stdout);
    const prepare = shell === "zsh" ? "autoload -Uz compinit; compinit -u -D" : "";
    const args = ["-c", `${prepare}\nsource ${file}\n${commands}`];
    const { stdout, stderr } = await new Deno.Command(shell, { args }).output();
    assertEquals(new TextDecoder().decode(stderr), "");
    return new TextDecoder().decode(stdout);
  } finally {
    await Deno.remove(file);
  }
}

const FIRST = [...new Set(COMMANDS.map(({ name }) => name.split(" ")[0]))];

/** Command lines up to the cursor, and what their last word may become. */
const CASES: readonly [line: string[], words: readonly unknown[]][] = [
  [[""], FIRST],
  [["ru"], ["run"]],
  [["plan", ""], ["check", "explain", "lock", "vendor", "diff", "hash"]],
  [["plan", "d"], ["diff"]],
  [["run", "--out"], ["--output-format"]],
  [["run", "--output-format", ""], ["text", "json", "json-trace"]],
  [["run", "--session", ""], ["new", "last"]],
  [["module", "validate", "--type", "pro"], ["provider"]],
  [["module", "new", ""], ["tool", "provider", "hook", "orchestrator", "context"]],
  [["completion", ""], ["bash", "zsh", "fish"]],
  [["serve", "--log-format", ""], ["json", "pretty"]],
  [["plan", "explain", "--frozen", "--stri"], ["--strict"]],
];

Deno.test({
  name: "completion bash completes commands, flags, values and first arguments in a real bash",
  ignore: !HAS_BASH,
  async fn() {
    const complete = `complete_line() {
  COMP_WORDS=(preamp "$@"); COMP_CWORD=$#; COMPREPLY=(); _preamp; echo "\${COMPREPLY[*]}"
}
`;
    const lines = [...CASES.map(([line]) => line), ["run", "--output-format", "=", "json-"], [
      "run",
      "-p",
      "",
    ]];
    const calls = lines.map((line) => `complete_line ${line.map((word) => `'${word}'`).join(" ")}`).join(
      "\n",
    );
    const printed = (await inShell("bash", complete + calls)).split("\n");
    const wanted = CASES.map(([, words]) => words.join(" "));
    assertEquals(printed, [...wanted, "json-trace", "", ""]); // where a file is meant, bash completes files by itself
  },
});

Deno.test({
  name: "completion fish completes commands, flags, values and first arguments in a real fish",
  ignore: !HAS_FISH,
  async fn() {
    const calls = CASES.map(([line]) =>
      `string join -- ' ' (complete -C 'preamp ${line.join(" ")}' | cut -f1)`
    );
    const printed = (await inShell("fish", calls.join("\n"))).trimEnd().split("\n");
    const sorted = (words: readonly unknown[]) => [...words].sort().join(" ");
    assertEquals(printed.map((line) => sorted(line.split(" "))), CASES.map(([, words]) => sorted(words)));
  },
});

Deno.test({
  name: "completion zsh defines its function in a real zsh",
  ignore: !HAS_ZSH,
  async fn() {
    assertEquals(
      (await inShell("zsh", "whence -w _preamp")).trim(),
      "_preamp: function",
    );
  },
});

Deno.test("completion lists the known shells", async () => {
  for (
    const [args, expected] of [
      [[], "name one shell, bash, zsh, fish"],
      [["fihs"], "did you mean fish?"],
      [["powershell"], "the shells are bash, zsh, fish"],
      [["bash", "zsh"], "name one shell"],
    ] as const
  ) {
    const io = fakeIo();
    assertEquals([await cli(["completion", ...args], io), io.stdout], [2, ""]);
    assertStringIncludes(io.stderr, expected);
  }
});
