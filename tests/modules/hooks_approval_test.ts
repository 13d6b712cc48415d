import type { JsonObject, Tool } from "preamp";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/hooks-approval/mod.ts";

async function mounted(rules?: unknown, tools: Partial<Tool>[] = []) {
  const fake = fakeCoordinator();
  for (const tool of tools) {
    fake.tools[tool.name ?? ""] = { description: "A tool", execute: () => null, name: "", ...tool };
  }
  await mount(fake.coordinator, rules === undefined ? {} : { rules });
  const decide = (tool_name: string, tool_input?: unknown) =>
    fake.emit("tool:pre", {
      tool_name,
      tool_call_id: "call_1",
      ...(tool_input === undefined ? {} : { tool_input }),
    });
  return { ...fake, decide };
}

/** Resolves to the action for one bash command: continue, ask_user or deny. */
async function verdict(rules: unknown, command: unknown): Promise<string> {
  return (await (await mounted(rules)).decide("bash", { command })).action;
}

Deno.test("hooks-approval registers on tool:pre at priority -10 and fails closed", async () => {
  const { handlers } = await mounted();
  assertEquals(
    handlers,
    [{ event: "tool:pre", priority: -10, name: "hooks-approval", fail_closed: true }],
  );
});

Deno.test("hooks-approval asks with prompt, options and risk when a rule has action ask", async () => {
  const { decide } = await mounted([{ tool: "calculator", action: "ask" }], [{ name: "calculator" }]);
  const emission = await decide("calculator", { expression: "6*7" });
  assertEquals([emission.action, emission.hook_name, emission.reason], ["ask_user", "hooks-approval", null]);
  assertEquals(emission.approval, {
    prompt: "Allow calculator?",
    options: ["Allow", "Deny"],
    timeout: null,
    default: "deny",
    hook_name: "hooks-approval",
    risk_level: "low",
  });
});

Deno.test("hooks-approval uses the prompt, timeout and default of the rule", async () => {
  const { decide } = await mounted(
    [{ tool: "refund_*", action: "ask", prompt: "Refund?", timeout_s: 9, default: "allow" }],
    [{ name: "refund_all", risk: "critical" }],
  );
  assertEquals((await decide("refund_all", {})).approval, {
    prompt: "Refund?",
    options: ["Allow", "Deny"],
    timeout: 9,
    default: "allow",
    hook_name: "hooks-approval",
    risk_level: "critical",
  });
});

for (const name of ["write", "edit", "write_file", "edit_file", "apply_patch", "bash", "job"]) {
  Deno.test(`hooks-approval asks without rules when the tool is ${name}`, async () => {
    assertEquals(
      (await (await mounted()).decide(name, { file_path: "a" })).approval?.prompt,
      `Allow ${name}?`,
    );
  });
}

Deno.test("hooks-approval asks without rules when the tool declares risk or approval, and only then", async () => {
  const tools: [Partial<Tool>, string][] = [
    [{ name: "plain" }, "continue"],
    [{ name: "low", risk: "low" }, "continue"],
    [{ name: "medium", risk: "medium" }, "continue"],
    [{ name: "high", risk: "high" }, "ask_user"],
    [{ name: "critical", risk: "critical" }, "ask_user"],
    [{ name: "asks", requires_approval: true }, "ask_user"],
  ];
  const { decide } = await mounted([], tools.map(([tool]) => tool));
  for (const [tool, action] of tools) {
    assertEquals((await decide(tool.name ?? "", {})).action, action, tool.name);
  }
  assertEquals((await decide("constructor", {})).action, "continue");
});

Deno.test("hooks-approval finds a tool by its mount name and by its own name", async () => {
  const fake = fakeCoordinator();
  const tool: Tool = { name: "my_tool", description: "A tool", risk: "high", execute: () => null };
  await fake.coordinator.mount("tools", tool, { name: "my-tool" });
  await mount(fake.coordinator, {});
  for (const tool_name of ["my_tool", "my-tool"]) {
    const emission = await fake.emit("tool:pre", { tool_name, tool_input: {} });
    assertEquals([emission.action, emission.approval?.risk_level], ["ask_user", "high"]);
  }
});

Deno.test("hooks-approval asks when the event has no tool name", async () => {
  const { emit } = await mounted();
  assertEquals((await emit("tool:pre", { tool_call_id: "a" })).approval?.prompt, "Allow unknown tool?");
});

Deno.test("hooks-approval lets the first matching rule decide", async () => {
  const { decide } = await mounted([
    { tool: "db_read", action: "allow" },
    { tool: "db_*", action: "deny" },
    { tool: "*", action: "ask" },
  ], [{ name: "db_read", risk: "high" }]);
  assertEquals((await decide("db_read", {})).action, "continue");
  const denied = await decide("db_drop", {});
  assertEquals([denied.action, denied.reason], ["deny", "rule 2 denies db_drop"]);
  assertEquals((await decide("other", {})).action, "ask_user");
});

const LS = [{ tool: "bash", argv: ["ls", "**"], action: "allow" }, {
  tool: "bash",
  argv: ["pwd"],
  action: "allow",
}];

for (
  const command of [
    "ls",
    "  ls -la  ",
    "ls 'my file'",
    'ls "a b" c\\ d',
    "l\\s -l",
    "'ls'",
    "ls -l \\\n  src",
    "pwd",
    "ls &",
    "(ls)",
    "{ ls; }",
    "! ls",
    "ls # rm",
    "ls && pwd; ls -l | ls",
    "if ls; then pwd; fi",
    "ls 2>&1 >/dev/null",
    "(pwd)",
  ]
) {
  Deno.test(`hooks-approval allows by argv when the command is ${JSON.stringify(command)}`, async () => {
    assertEquals(await verdict(LS, command), "continue");
  });
}

const NOT_LS = [
  "ls; rm -rf /",
  "ls;rm -rf /",
  "ls && rm -rf /",
  "ls || rm -rf /",
  "ls | sh",
  "ls & rm -rf /",
  "ls\nrm -rf /",
  "ls\r\nrm -rf /",
  "ls $(rm -rf /)",
  'ls "$(rm -rf /)"',
  "ls `rm -rf /`",
  'ls "`rm -rf /`"',
  "ls <(rm -rf /)",
  "ls > /etc/passwd",
  "ls >> x",
  "ls 2>x",
  "ls &>x",
  "ls < x",
  "ls << EOF",
  "ls $HOME",
  'ls "$HOME"',
  "ls ${HOME}",
  "ls $'\\x41'",
  "ls *",
  "ls a?c",
  "ls [ab]",
  "ls {a,b}",
  "ls ~",
  "X=1 ls",
  "PATH=/tmp:$PATH ls",
  "ls 'open",
  'ls "open',
  "ls \\",
  "/tmp/ls",
  "./ls",
  "lsof",
  "LS",
  "",
  " ",
  "pwd -P",
  "ls\0; rm -rf /",
  "ls\u0007",
  "ls ".padEnd(40_000, "a"),
];

for (const command of NOT_LS) {
  Deno.test(`hooks-approval asks when the command is ${JSON.stringify(command).slice(0, 40)}`, async () => {
    assertEquals(await verdict(LS, command), "ask_user");
  });
}

Deno.test("hooks-approval does not match a command that only starts like the pattern of an ask rule", async () => {
  const rules = [{ tool: "bash", argv: ["git", "push"], action: "ask" }, { tool: "bash", action: "deny" }];
  assertEquals(await verdict(rules, "git push"), "ask_user");
  assertEquals(await verdict(rules, "git push; true"), "deny");
});

Deno.test("hooks-approval matches each glob of argv with one word when there is no last **", async () => {
  const rules = [{ tool: "bash", argv: ["npm", "run", "test*"], action: "allow" }];
  assertEquals(await verdict(rules, "npm run test:unit"), "continue");
  assertEquals(await verdict(rules, "npm run 'test a b'"), "continue");
  assertEquals(await verdict(rules, "npm run test x"), "ask_user");
  assertEquals(await verdict(rules, "npm run"), "ask_user");
});

Deno.test("hooks-approval takes words literally when the input is a list", async () => {
  const { decide } = await mounted(LS);
  const action = async (input: JsonObject) => (await decide("bash", input)).action;
  assertEquals(await action({ argv: ["ls", "$(x)", "*"] }), "continue");
  assertEquals(await action({ command: ["ls", "-l"] }), "continue");
  assertEquals(await action({ command: "ls", args: ["-l"] }), "continue");
  assertEquals(await action({ command: "pwd", args: ["-P"] }), "ask_user");
  assertEquals(await action({ command: "ls", argv: ["rm"] }), "ask_user");
  assertEquals(await action({ argv: ["ls", 1] }), "ask_user");
  assertEquals(await action({ argv: [] }), "ask_user");
  assertEquals(await action({ command: { ls: true } }), "ask_user");
});

const NO_RM = [{ tool: "*", argv: ["rm", "**"], action: "deny" }, { tool: "*", action: "allow" }];

const COULD_BE_RM = [
  "rm -rf /",
  "rm",
  "/bin/rm x",
  "\\rm x",
  "r''m x",
  "'r'\"m\" x",
  "ls; rm x",
  "ls && rm x",
  "ls | rm x",
  "ls\nrm x",
  "(rm x)",
  "{ rm x; }",
  "X=1 Y=$Z rm x",
  "! rm x",
  "if true; then rm x; fi",
  "for f in a b; do rm $f; done",
  "for f do rm x; done",
  "while rm x; do :; done",
  "f() { rm x; }; f",
  "function f { rm x; }",
  "case $x in a) rm x;; esac",
  "echo $(rm x)",
  'echo "a $(echo $(rm x)) b"',
  "echo `rm x`",
  'echo "`rm x`"',
  "echo `echo \\`rm x\\``",
  "cat <(rm x)",
  "echo ${x:-$(rm y)}",
  "echo ${ rm y; }",
  "sudo rm x",
  "sudo -u root rm x",
  "env -i A=1 /bin/rm x",
  "env - rm x",
  "env -u A - B=1 rm x",
  "eval -- rm x",
  "taskset 1 rm x",
  "find . -name '*.o' -exec rm {} +",
  "xargs -n1 rm",
  "timeout 5 nice rm x",
  "sh -c 'rm x'",
  'bash -lc "cd /; rm x"',
  "sudo sh -c 'cd / && rm x'",
  "eval 'rm x'",
  "sh -c \"sh -c 'rm x'\"",
  "ssh host 'cd /tmp; rm -rf x'",
  "bash <<< 'rm x'",
  "sudo bash -s <<<'cd /; rm x' >out",
  'sh <<< "$SCRIPT"',
  "(bash) <<< 'rm x'",
  "{ bash; } <<< 'rm x'",
  "if true; then bash; fi <<< 'rm x'",
  "while true; do bash; done <<<'rm x'",
  ". /dev/stdin <<< 'rm x'",
  "bash 3<<<'rm x' <<<a <&3",
  "$CMD x",
  '"$CMD" x',
  "$CMD",
  "$'\\x72m' x",
  "r* x",
  "/bin/?m x",
  "r{m,n} x",
  ">out rm x",
  "rm>out x",
  "2>&1 rm x",
  "ls &>out rm x",
  "make 2>&- ; rm x",
  "r\\\nm x",
  "cat <<EOF\n'\nEOF\nrm x",
  "ls # '\nrm x",
  "echo 'open",
  "rm".padEnd(40_000, "a"),
  "((rm x) && (rm y))",
  "for ((;;)); do rm x; done",
];

for (const command of COULD_BE_RM) {
  Deno.test(`hooks-approval denies by argv when the command is ${JSON.stringify(command).slice(0, 60)}`, async () => {
    assertEquals(await verdict(NO_RM, command), "deny");
  });
}

const NOT_RM = [
  "ls -la",
  "echo rm x",
  "git rm x",
  "grep -r 'rm -rf' .",
  "echo 'rm; rm'",
  'echo "$HOME" && ls $DIR/*.ts > out 2>&1',
  "find . -name '*.ts' -print",
  "[ -f x ] && cat x",
  'for f in *.ts; do echo "$f"; done',
  'if [ -n "$X" ]; then ls; else pwd; fi',
  "X=$(git rev-parse HEAD) make build",
  "sudo ls",
  "sh -c 'ls | wc -l'",
  "cat < rm",
  "cat <<< 'rm x'",
  "sh <<< 'ls -la'",
  "ls > rm",
  "make &> rm",
  "lsrm; rmdir x",
  "curl 'https://x.test/?a=1&b=2'",
];

for (const command of NOT_RM) {
  Deno.test(`hooks-approval does not deny by argv when the command is ${JSON.stringify(command)}`, async () => {
    assertEquals(await verdict(NO_RM, command), "continue");
  });
}

Deno.test("hooks-approval names the rule that denied", async () => {
  const emission = await (await mounted(NO_RM)).decide("bash", { command: "ls; rm x" });
  assertStringIncludes(emission.reason ?? "", "rule 1 denies this command");
});

Deno.test("hooks-approval treats words that are computed at run time as any number of words when denying", async () => {
  const rules = [{ tool: "bash", argv: ["git", "push", "--force"], action: "deny" }, {
    tool: "*",
    action: "allow",
  }];
  assertEquals(await verdict(rules, "git push --force"), "deny");
  assertEquals(await verdict(rules, "git push $FLAGS"), "deny");
  assertEquals(await verdict(rules, "git $ARGS"), "deny");
  assertEquals(await verdict(rules, 'git push "$FLAG"'), "deny");
  assertEquals(await verdict(rules, 'git "$ARG"'), "continue");
  assertEquals(await verdict(rules, "git push"), "continue");
  assertEquals(await verdict(rules, "git push --force $EXTRA"), "deny");
  assertEquals(await verdict(rules, "git push --force x"), "continue");
});

Deno.test("hooks-approval asks when a rule has argv and the event has no input", async () => {
  for (const action of ["allow", "ask", "deny"]) {
    const { decide } = await mounted([{ tool: "bash", argv: ["ls"], action }, {
      tool: "*",
      action: "allow",
    }]);
    assertEquals((await decide("bash")).action, "ask_user");
    assertEquals((await decide("calculator")).action, "continue");
  }
});

Deno.test("hooks-approval continues with the next rule when the input has no command", async () => {
  assertEquals((await (await mounted(NO_RM)).decide("calculator", { expression: "1" })).action, "continue");
  assertEquals((await (await mounted(LS)).decide("bash", { file: "x" })).action, "ask_user");
});

Deno.test("hooks-approval asks instead of allowing when a rule has an unknown key, and still denies", async () => {
  const rule = (action: string) => [{ tool: "bash", pattern: "ls*", action }];
  assertEquals(await verdict(rule("allow"), "rm -rf x"), "ask_user");
  assertEquals(await verdict(rule("ask"), "rm -rf x"), "ask_user");
  assertEquals(await verdict(rule("deny"), "ls"), "deny");
});

const BAD: [unknown, string][] = [
  [{ rules: {} }, "config.rules: must be a list: received an object"],
  [{ rules: ["x"] }, "config.rules[0]: must be an object: received text"],
  [{ rules: [{ tool: "a" }] }, 'config.rules[0]: it must have "action"'],
  [{ rules: [{ action: "ask" }] }, 'config.rules[0]: it must have "tool"'],
  [
    { rules: [{ tool: "x".repeat(257), action: "ask" }] },
    "config.rules[0].tool: must have at most 256 characters: received 257",
  ],
  [{ rules: [{ tool: "a", action: "deny", argv: [] }] }, "config.rules[0].argv: must have at least 1"],
  [{ rules: [{ tool: "a", action: "deny", argv: "ls" }] }, "config.rules[0].argv: must be a list"],
  [{ rules: [{ tool: "a", action: "deny", argv: ["**"] }] }, "must name a program before"],
  [
    { rules: [{ tool: "a", action: "deny", argv: ["a", "**", "b"] }] },
    'config.rules[0].argv[1]: may be "**" only at',
  ],
  [{ rules: [{ tool: "a", action: "deny", argv: ["a", 1] }] }, "config.rules[0].argv[1]: must be text"],
  [
    { rules: [{ tool: "a", action: "allow", prompt: "?" }] },
    'config.rules[0].prompt: is only valid with action "ask"',
  ],
  [{ rules: [{ tool: "a", action: "ask", prompt: " " }] }, "config.rules[0].prompt: must not be blank"],
  [
    { rules: [{ tool: "a", action: "ask", timeout_s: 0 }] },
    "config.rules[0].timeout_s: must be a number above 0",
  ],
  [
    { rules: [{ tool: "a", action: "ask", timeout_s: "5" }] },
    "config.rules[0].timeout_s: must be a number above 0",
  ],
  [
    { rules: [{ tool: "a", action: "ask", default: "ask" }] },
    "config.rules[0].default: must be one of allow, deny",
  ],
  [
    { rules: Array.from({ length: 501 }, () => ({ tool: "a", action: "ask" })) },
    "at most 500 entries: received 501",
  ],
  [
    { rules: Array.from({ length: 100 }, () => ({ tool: "a", action: "deny", argv: Array(20).fill("x") })) },
    "at most 1000 globs",
  ],
  [
    { rules: Array.from({ length: 100 }, () => ({ tool: "x".repeat(200), action: "deny" })) },
    "at most 16384 characters in all globs",
  ],
];

for (const [config, text] of BAD) {
  Deno.test(`hooks-approval denies every call when its config is wrong: ${text}`, async () => {
    const { coordinator, handlers, emit } = fakeCoordinator();
    await mount(coordinator, config as JsonObject);
    assertEquals(handlers.map(({ event, fail_closed }) => [event, fail_closed]), [["tool:pre", true]]);
    const { action, reason } = await emit("tool:pre", { tool_name: "calculator", tool_call_id: "call_1" });
    assertEquals(action, "deny");
    assertStringIncludes(String(reason), text);
  });
}

Deno.test("hooks-approval does not read a long command for many globs: it may run anything", async () => {
  const rules = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ tool: "bash", argv: [`*x*y${at}`, "**"], action: "deny" }));
  const command = "a|".repeat(1_500) + "a";
  const allow = { tool: "bash", action: "allow" };
  const took_ms = await processorTime(async () => {
    assertEquals(await verdict([...rules(300), allow], command), "deny");
    assertEquals(await verdict([...rules(300), allow], Array(10_000).fill("")), "deny");
    assertEquals(await verdict([...rules(300), allow], "a|".repeat(300) + "a"), "continue");
    assertEquals(await verdict([...rules(5), allow], command), "continue");
  });
  assert(took_ms < 5_000, `${took_ms} ms`);
});

const ALLOWING = ["git", "find", "env", "sudo", "xargs", "bash", "timeout", "cat", "echo", "printf"].map((
  program,
) => ({
  tool: "bash",
  argv: [program, "**"],
  action: "allow",
}));

/** Commands that begin with an allowed program and run another one. */
const STEPPING_ROUND = [
  "git status; rm x",
  "git log | tee x",
  "git log > x",
  "cat x >> y",
  "cat < /etc/passwd",
  "find . -exec rm {} +",
  "find . -name a -execdir rm x \\;",
  "find . -exec {} \\;",
  "find . $ARGS",
  "find . -exec git log \\; -ok rm x \\;",
  "env rm x",
  "env A=1 git status",
  "env -S 'rm x'",
  "env --split-string='rm x'",
  "env --s='rm x'",
  "env -u A rm x",
  "sudo -u root rm x",
  "sudo -i",
  "sudo --user root git log",
  "xargs rm",
  "xargs -n 1 rm",
  "xargs git",
  "bash -c 'rm x'",
  "bash -lc 'git log; rm x'",
  'bash -c "$X"',
  "bash",
  "bash -s",
  "bash /dev/stdin",
  "echo rm x | bash",
  "bash <<< 'rm x'",
  "bash <<E\nrm x\nE",
  "bash <(echo rm x)",
  "timeout 5 rm x",
  "timeout -k 1 5 env rm x",
  "timeout 5 bash -c 'timeout 5 rm x'",
  "A=1 git status",
  "PATH=/tmp; git status",
  "git() { rm x; }; git",
  "echo $(rm x)",
  "echo ${x:=$(rm x)}",
  "x='a[$(rm x)]'; echo $((x))",
  "[[ $x -eq 1 ]] && git log",
  "printf -v x '$(rm x)'; echo ${x@P}",
  "alias git=rm; git x",
  "exec rm x",
  "eval rm x",
  "./git status",
  "/tmp/git status",
  "cat <<< $(rm x)",
  "cat <<E\n$(rm x)\nE",
  "coproc rm x",
  "time rm x",
  "for x in $(rm y); do echo; done",
  "trap 'rm x' EXIT",
];

for (const command of STEPPING_ROUND) {
  Deno.test(`hooks-approval asks although the first program is allowed: ${JSON.stringify(command)}`, async () => {
    assertEquals(await verdict(ALLOWING, command), "ask_user");
  });
}

Deno.test("hooks-approval allows what starts only allowed commands", async () => {
  const commands = [
    "find . -name a -exec git log {} +".replace("{} ", ""),
    "env git status",
    "sudo -u root -n git status",
    "timeout -k 1 5 git log",
    "bash -c 'git log; echo done'",
    "bash <<'E'\ngit log\nE",
    "git log 2>/dev/null | cat | cat",
    "for x in a b; do echo a; done",
    "bash script.sh",
    "cat <<E\ntext\nE",
  ];
  for (const command of commands) {
    assertEquals([command, await verdict(ALLOWING, command)], [command, "continue"]);
  }
});

/** Rules that allow programs with any words. */
const ANY_WORDS = [
  ..."awk cat curl dd declare enable export find for git go hash jobs let ls mapfile printf read rg sed sort tar"
    .split(" "),
  ..."test [ uniq unset wait compgen alias timeout".split(" "),
].map((program) => ({ tool: "bash", argv: [program, "**"], action: "allow" }));

const EVALUATED = [
  "test -v 'a[$(rm x)]'",
  "[ -v 'a[b]' ]",
  "printf -v 'a[$(rm x)]' y",
  "printf -v PATH /tmp; ls",
  "read -r 'a[$(rm x)]'",
  "read PATH <<< /tmp; ls",
  "declare 'a[$(rm x)]=1'",
  "declare -i x=y",
  "declare PATH=/tmp; ls",
  "export PATH=/tmp; ls",
  "export 'PATH=/tmp'; ls",
  "unset 'a[$(rm x)]'",
  "wait -p 'a[$(rm x)]'",
  "let 'a[$(rm x)]=1'",
  "let x=1",
  "mapfile -C 'rm x' -c 1 y",
  "compgen -C 'rm x'",
  "compgen -W '$(rm x)'",
  "hash -p /tmp/ls ls; ls",
  "enable -f /tmp/x.so ls; ls",
  "alias ls=rm; ls x",
  "jobs -x rm x",
  "timeout 1 test -v 'a[$(rm x)]'",
  "for PATH in /tmp; do ls; done",
];
const WRITING = [
  "git log --output=notes.txt",
  "git log --outp notes.txt",
  "git diff --ext-diff",
  "git -c core.pager='rm x' log",
  "git -C /tmp --exec-path=/tmp log",
  "git -C /tmp show --output=x",
  "git archive -o x HEAD",
  "git grep -Orm x",
  "git rebase -x 'rm x' HEAD",
  "git bisect run rm x",
  "find . -fprintf out %p",
  "find . -name a -delete",
  "sort -o out in",
  "sort -uo out in",
  "sort -oout in",
  "sort --compress-program=rm in",
  "uniq -c in out",
  "uniq -f 1 -- in out",
  "sed -i s/a/b/ x",
  "sed -n -i.bak p x",
  "sed 's/a/b/w out' x",
  "sed -n '1e rm x' y",
  "sed -f script x",
  "awk 'BEGIN { system(\"rm x\") }'",
  "awk '{ print > \"out\" }' x",
  "awk -f script x",
  "tar xf a.tar --to-command='rm x'",
  "tar xIf 'rm x' a.tar",
  "tar -xf a.tar --checkpoint-action=exec=rm",
  "rg --pre rm x",
  "rg --pre=rm x",
  "curl -sSo out https://example.com",
  "curl -O https://example.com/x",
  "curl -K config",
  "dd if=x of=y",
  "go build -o x",
  "go vet -vettool=rm",
];
for (const command of [...EVALUATED, ...WRITING]) {
  Deno.test(`hooks-approval asks although the program may have any words: ${JSON.stringify(command)}`, async () => {
    assertEquals(await verdict(ANY_WORDS, command), "ask_user");
  });
}

Deno.test("hooks-approval allows words that are neither evaluated nor write nor run", async () => {
  const commands = [
    "git log --oneline -n 3 --output-indicator-new=+",
    "git -C sub --no-pager diff -- --output=x",
    "git ls-files -o --exclude-standard",
    "git commit -c HEAD",
    "find . -name '*.ts' -print",
    "sort -k1,1 -t: in",
    "uniq -c in",
    "uniq -f 1 in",
    "sed -n '10,20p' x",
    "sed -E -e 's/[ab]+/c/g' -e '/x/d' y",
    "sed 's|a/b|c|; $!d' x",
    "awk -F: '$3 == 0 || NR < 3 { print $1 }' x",
    "tar -tzf a.tgz",
    "rg --pretty -n x",
    "curl -sSf https://example.com",
    "dd if=x",
    "test -n x",
    "[ x = y ]",
    "printf '[%s]\\n' x",
    "read -r line",
    "unset 'a[0]'",
    "hash -r",
    "for file in a b; do ls; done",
  ];
  for (const command of commands) {
    assertEquals([command, await verdict(ANY_WORDS, command)], [command, "continue"]);
  }
});

Deno.test("a file that an option writes is judged like a redirection, and a variable like an assignment", async () => {
  const rules = [
    ...ANY_WORDS,
    { tool: "bash", argv: [">", "out/*"], action: "allow" },
    { tool: "bash", argv: ["LANG=*"], action: "allow" },
    { tool: "bash", argv: [">", "/etc/*"], action: "deny" },
  ];
  for (
    const command of [
      "git log --output=out/log",
      "sort -o out/a in",
      "sed -i p out/a out/b",
      "export LANG=C; ls",
    ]
  ) {
    assertEquals([command, await verdict(rules, command)], [command, "continue"]);
  }
  assertEquals(await verdict(rules, "git log --output /etc/x"), "deny");
  assertEquals(await verdict(rules, "sed -i p out/a b"), "ask_user");
});

Deno.test("rules about redirections and assignments judge them like commands", async () => {
  const rules = [...ALLOWING, { tool: "bash", argv: [">", "out/*"], action: "allow" }, {
    tool: "bash",
    argv: ["LANG=*"],
    action: "allow",
  }, { tool: "bash", argv: [">", "/etc/*"], action: "deny" }];
  assertEquals(await verdict(rules, "LANG=C git log > out/log"), "continue");
  assertEquals(await verdict(rules, "git log > elsewhere"), "ask_user");
  assertEquals(await verdict(rules, "git log > /etc/passwd"), "deny");
  assertEquals(await verdict(rules, 'git log > "$FILE"'), "deny");
  assertEquals(await verdict(rules, "LD_PRELOAD=x git log"), "ask_user");
});

Deno.test("rules match fields of the input, of any tool", async () => {
  const { decide } = await mounted([
    { tool: "write", input: { path: "*secret*" }, action: "deny" },
    { tool: "write", input: { path: "docs/*" }, action: "allow" },
    { tool: "github__*", input: { repo: "me/*", dry_run: "true" }, action: "allow" },
    { tool: "github__*", action: "ask" },
  ], [
    { name: "write", input_schema: { type: "object", properties: { path: {}, file_path: {} } } },
    { name: "github__merge", input_schema: { anyOf: [{ properties: { repo: {}, dry_run: {} } }] } },
    { name: "github__other", input_schema: { properties: { repository: {} } } },
  ]);
  const action = async (tool: string, input: JsonObject) => (await decide(tool, input)).action;
  assertEquals(await action("write", { path: "docs/a.md" }), "continue");
  assertEquals(await action("write", { file_path: "docs/a.md" }), "continue");
  assertEquals(await action("write", { path: "docs/a.md", file_path: "b" }), "ask_user");
  for (const path of ["docs/../b", "b", "docs", 5, { path: "docs/a" }]) {
    assertEquals(await action("write", { path } as JsonObject), "ask_user");
  }
  assertEquals(await action("write", { file_path: "docs/secret.md" }), "deny");
  assertEquals(await action("github__merge", { repo: "me/x", dry_run: true }), "continue");
  assertEquals(await action("github__merge", { repo: "me/x" }), "ask_user");
  assertEquals(
    await action("github__other", { repo: "me/x", dry_run: true, repository: "other/x" }),
    "ask_user",
  );
  assertEquals(await action("github__merge", {}), "ask_user");
  assertEquals((await decide("write")).action, "ask_user");
});

Deno.test("presets decide about calls that no rule matches", async () => {
  const tools: Partial<Tool>[] = [{ name: "read" }, { name: "write", risk: "medium" }, {
    name: "medium",
    risk: "medium",
  }, {
    name: "high",
    risk: "high",
  }];
  const actions = async (preset: string) => {
    const fake = fakeCoordinator();
    for (const tool of tools) {
      fake.tools[tool.name!] = { description: "A tool", execute: () => null, name: "", ...tool };
    }
    await mount(fake.coordinator, { preset, rules: [{ tool: "allowed", action: "allow" }] });
    const decided = ["read", "write", "medium", "high", "allowed"].map(async (tool_name) =>
      (await fake.emit("tool:pre", { tool_name, tool_call_id: "c", tool_input: {} })).action
    );
    return await Promise.all(decided);
  };
  assertEquals(await actions("read-only"), ["continue", "deny", "deny", "deny", "continue"]);
  assertEquals(await actions("ask-writes"), ["continue", "ask_user", "continue", "ask_user", "continue"]);
  assertEquals(await actions("ask-all"), ["ask_user", "ask_user", "ask_user", "ask_user", "continue"]);
});

Deno.test("polling a job is not asked about, and writing to it is", async () => {
  const { decide } = await mounted();
  const action = async (action: string) => (await decide("job", { id: "1", action })).action;
  assertEquals([await action("poll"), await action("write")], ["continue", "ask_user"]);
});

Deno.test("an answer is offered for the session only when one rule asks about all commands for certain", async () => {
  const rules = [{
    tool: "bash",
    argv: ["git", "push", "**"],
    action: "ask",
    prompt: "Push?",
    remember: "pattern",
  }];
  const { decide } = await mounted(rules);
  const asked = async (command: string) => {
    const { approval } = await decide("bash", { command });
    return [approval?.prompt, approval?.options?.length];
  };
  assertEquals(await asked("git push"), ["Push?", 3]);
  assertEquals(await asked("git push && git push --tags"), ["Push?", 3]);
  assertEquals(await asked("git push; rm x"), ["Allow all commands of this call of bash?", 2]);
  assertEquals(await asked("$X"), ["Allow bash?", 2]);
});
