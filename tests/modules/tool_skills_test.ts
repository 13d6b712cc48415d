import { type JsonObject, noPermissions } from "preamp";
import * as skills from "../../modules/tool-skills/mod.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { inFolder } from "../support/folder.ts";

function skillText(name: string, description = `Use ${name}.`, body = `Do ${name}.`): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`;
}

async function write(folder: string, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeFile(
      `${folder}/${name}`,
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
  }
}

/** Mounts the module on a folder; a failure of the tool is returned as its message after `!`. */
async function mounted(folder: string, config: JsonObject = {}) {
  const { coordinator, emit, emitted } = fakeCoordinator({}, {}, { read: [folder] });
  await skills.mount(coordinator, config);
  const tool = coordinator.tools.skill!;
  return {
    emit,
    description: tool.description!,
    warnings: emitted("user:notification").map(({ message }) => String(message)),
    async call(name: string): Promise<string> {
      const result = await tool.execute({ name }) as string | { error: { message: string } };
      return typeof result === "string" ? result : `!${result.error.message}`;
    },
  };
}

Deno.test("skill lists names and descriptions, and gives a body with the skill's other files on demand", () =>
  inFolder(async (folder) => {
    await write(folder, {
      ".claude/skills/pdf-forms/SKILL.md": skillText(
        "pdf-forms",
        ">\n  Fills forms\n  of PDF files",
        "Do\nit.",
      ),
      ".claude/skills/pdf-forms/scripts/fill.py": "print()",
      "skills/release/SKILL.md": skillText("release").replaceAll("\n", "\r\n"),
      "skills/no-skill/README.md": "x",
      "skills/README.md": "x",
    });
    const { description, warnings, call } = await mounted(folder);
    assertEquals(warnings, []);
    assert(description.endsWith("Skills:\n- pdf-forms: Fills forms of PDF files\n- release: Use release."));
    assertEquals(
      await call("pdf-forms"),
      `Folder: ${folder}/.claude/skills/pdf-forms\nIts other files:\n- scripts/fill.py\n\nDo\nit.`,
    );
    await write(folder, { "skills/release/SKILL.md": skillText("release", "Changed", "Changed.") });
    assertEquals(await call("release"), `Folder: ${folder}/skills/release\n\nChanged.`);
    assertEquals(
      (await call("relase")).split("\n").slice(0, 2),
      ["!There is no skill of this name. Skills:", "- pdf-forms: Fills forms of PDF files"],
    );
    await Deno.remove(`${folder}/skills/release/SKILL.md`);
    assertEquals(await call("release"), `!${folder}/skills/release/SKILL.md does not exist`);
  }));

Deno.test("skill takes folders and single skills of the config, first come first served; it may hide the list", () =>
  inFolder(async (folder) => {
    await write(folder, {
      "a/one/SKILL.md": skillText("one", "First"),
      "b/one/SKILL.md": skillText("one", "Second"),
      "skills/three/SKILL.md": skillText("three"),
    });
    await Deno.symlink(`${folder}/a/one`, `${folder}/b/same`);
    const config = {
      skills: [`${folder}/a/one`, "b", "absent", "a/one/SKILL.md"],
      visibility: { enabled: false },
    };
    const { description, warnings, call } = await mounted(folder, config);
    assertEquals(description.includes("First"), false);
    assertStringIncludes(await call("?"), "Skills:\n- one: First");
    assertEquals(warnings, [
      "Cannot use a skill: absent does not exist",
      "Cannot use a skill: a/one/SKILL.md is not a folder",
      "Cannot use a skill: b/one has the name of a/one",
    ]);
    const none = await mounted(folder, { skills: [] });
    assertStringIncludes(none.description, "There are no skills here.");
  }));

Deno.test("skill reads published files: text that is no valid YAML, odd quotes, unknown and missing keys", () =>
  inFolder(async (folder) => {
    const files: [front: string, line: string][] = [
      [
        "name: a0\ndescription: Makes pages. Trigger words: page, site",
        "a0: Makes pages. Trigger words: page, site",
      ],
      [
        "name: a1\ndescription: [Beta] Use it\n  when it rains: always",
        "a1: [Beta] Use it when it rains: always",
      ],
      ["name: a2\ndescription: [Beta]", "a2: [Beta]"],
      ['name: \'a3\ndescription: "Say "hi" now"', 'a3: Say "hi" now'],
      [
        "name: a4\ndescription: >-\n  Folded\n  text: yes\nlicense: {MIT\nversion: 1: 2",
        "a4: Folded text: yes",
      ],
      ["name: a5\ndescription: @mention % & *", "a5: @mention % & *"],
      ["name: My_Skill Six\ndescription: d # e", "my-skill-six: d"],
      ["description: No name", "s07: No name"],
      ["name: a8\n# a comment\nmetadata:\n  description: inner", "a8: The body."],
      ["", "s09: The body."],
      [`name: b0\ndescription: ${"x".repeat(3_000)}`, `b0: ${"x".repeat(3_000)}`],
      ["name: b1\ndescription: &a [*a]", "b1: &a [*a]"],
      ["  name: b2\n  description: Indented\n  metadata:\n    name: inner", "b2: Indented"],
      ["  name: b3\n  description: Indented: too", "b3: Indented: too"],
      ["# a comment\n{ name: b4, description: On one line }", "b4: On one line"],
      ["\"name\": b5\n'description': 'It''s quoted'\nname: again", "b5: It's quoted"],
    ];
    for (const [index, [front]] of files.entries()) {
      await write(folder, {
        [`skills/s${String(index).padStart(2, "0")}/SKILL.md`]: `---\n${front}\n---\n\n# The body.\nMore`,
      });
    }
    await write(folder, {
      "skills/t0/SKILL.md": "\uFEFF\n---\r\nname: t0\r\ndescription: CR\r\n---\r\nx",
      "skills/t1/SKILL.md": "# Only a text",
      "skills/t2/SKILL.md": skillText("t2", "Long", "y\n".repeat(127 * 1024)),
    });
    const { description, warnings, call } = await mounted(folder);
    assertEquals(warnings, []);
    const lines = description.split("\n").slice(1);
    const expected = [...files.map(([, line]) => line), "t0: CR", "t1: Only a text", "t2: Long"];
    assertEquals(lines, expected.map((line) => `- ${line}`));
    assertStringIncludes(await call("My_Skill Six"), "# The body.");
    const cut = await call("t2");
    assert(cut.length < 101_000);
    assertStringIncludes(cut, `more characters: read ${folder}/skills/t2/SKILL.md from line 50006 on]`);
  }));

Deno.test("a skill that cannot be read is named with its path and the reason, to the person and to the model", () =>
  inFolder(async (folder) => {
    const bad: [file: string, rule: string][] = [
      ["---\nname: a\n", "must have a second line of --- after its keys"],
      ["", "must have a description, or a text"],
      [skillText("a", "x", "y".repeat(256 * 1024)), "bytes; at most 262144 can be read at once"],
    ];
    for (const [index, [text]] of bad.entries()) await write(folder, { [`skills/s${index}/SKILL.md`]: text });
    await write(folder, { "skills/t/SKILL.md": skillText("2048", "Fine") });
    const { description, warnings } = await mounted(folder);
    assertStringIncludes(description, "Skills:\n- 2048: Fine\nNo skills:\n- Cannot use a skill: ");
    for (const [index, [, rule]] of bad.entries()) {
      assertStringIncludes(warnings[index]!, `skills/s${index}/SKILL.md `);
      assertStringIncludes(warnings[index]!, rule);
      assertStringIncludes(description, warnings[index]!);
    }
    assertEquals(warnings.length, bad.length);
  }));

Deno.test("a prompt that begins with the name of a skill brings its text; one that only people start is not listed", () =>
  inFolder(async (folder) => {
    const keys = (more: string) => `d\n${more}`;
    await write(folder, {
      "skills/release/SKILL.md": skillText("release", keys("shortcut: rel\nuser-invocable: true")),
      "skills/own/SKILL.md": skillText("own", keys("disable-model-invocation: true")),
      "skills/args/SKILL.md": skillText(
        "args",
        keys("when_to_use: when: now"),
        "Take $ARGUMENTS, $ARGUMENTS.",
      ),
      "skills/inner/SKILL.md": skillText("inner", keys("user-invocable: false")),
    });
    const { description, call, emit } = await mounted(folder);
    assertStringIncludes(description, "Skills:\n- args: d when: now\n- inner: d\n- release: d");
    assertStringIncludes(await call("own"), "!There is no skill of this name.");
    const submitted = async (prompt: unknown) =>
      (await emit("prompt:submit", { prompt } as JsonObject)).data.prompt;
    const text = (name: string) =>
      `<skill name="${name}">\nFolder: ${folder}/skills/${name}\n\nDo ${name}.\n</skill>`;
    assertEquals(await submitted("/release 1.2"), `/release 1.2\n\n${text("release")}`);
    assertStringIncludes(String(await submitted("/args a $& b")), "\n\nTake a $& b, a $& b.\n</skill>");
    assertEquals(await submitted("/rel"), `/rel\n\n${text("release")}`);
    assertEquals(await submitted("/own"), `/own\n\n${text("own")}`);
    assertEquals(await submitted([{ type: "text", text: "/own x" }, { type: "image" }]), [
      { type: "text", text: `/own x\n\n${text("own")}` },
      { type: "image" },
    ]);
    for (const prompt of ["/inner", "release", "/releases", "/etc/release", " /release"]) {
      assertEquals(await submitted(prompt), prompt);
    }
    const child = fakeCoordinator({}, {}, { read: [folder] });
    Object.defineProperty(child.coordinator, "parent_id", { value: "ses_0" });
    await skills.mount(child.coordinator, {});
    assertEquals((await child.emit("prompt:submit", { prompt: "/own" })).data.prompt, "/own");
    await Deno.remove(`${folder}/skills/own/SKILL.md`);
    const { action, reason } = await emit("prompt:submit", { prompt: "/own" });
    assertEquals([action, reason?.includes("does not exist")], ["deny", true]);
    const found = await skills.finds({}, { ...noPermissions(), read: [folder] });
    assertEquals(found, [
      { label: "skill args", commands: [{ name: "args", summary: "d when: now" }] },
      { label: "skill inner", commands: [] },
      {
        label: "skill release",
        commands: [{ name: "release", summary: "d" }, { name: "rel", summary: "d" }],
      },
    ]);
  }));

Deno.test("allowed-tools narrows the tools of the turn in which a skill is loaded, and never widens them", () =>
  inFolder(async (folder) => {
    const front = (tools: string) => `d\nallowed-tools: ${tools}`;
    await write(folder, {
      "skills/look/SKILL.md": skillText("look", front("Read, Grep, Bash(git log:*), mcp__hub__get*")),
      "skills/list/SKILL.md": skillText("list", front("[Read, Edit]")),
      "skills/spaces/SKILL.md": skillText("spaces", front("Bash(git *) Read")),
      "skills/none/SKILL.md": skillText("none", front("")),
      "skills/any/SKILL.md": skillText("any"),
    });
    const { call, emit } = await mounted(folder);
    const allowed = async () => {
      const names = [
        "read",
        "grep",
        "bash",
        "job",
        "edit",
        "apply_patch",
        "write",
        "hub__get_x",
        "hub__set",
        "skill",
      ];
      const decided = await Promise.all(names.map((tool_name) => emit("tool:pre", { tool_name })));
      return names.filter((_, index) => decided[index]!.action === "continue").join(" ");
    };
    const all = "read grep bash job edit apply_patch write hub__get_x hub__set skill";
    const turn = () => emit("prompt:submit", { prompt: "go" });
    assertEquals(await allowed(), all);
    await call("any");
    assertEquals(await allowed(), all);
    await call("look");
    assertEquals(await allowed(), "read grep bash job hub__get_x skill");
    const denied = await emit("tool:pre", { tool_name: "write" });
    assertStringIncludes(denied.reason!, "the skill look allows only Read, Grep, Bash, mcp__hub__get*");
    await call("list");
    assertEquals(await allowed(), "read skill");
    await turn();
    assertEquals(await allowed(), all);
    await call("list");
    assertEquals(await allowed(), "read edit apply_patch skill");
    await turn();
    await call("spaces");
    assertEquals(await allowed(), "read bash job skill");
    await turn();
    await emit("prompt:submit", { prompt: "/none" });
    assertEquals(await allowed(), "skill");
  }));

Deno.test("no link leads out of the granted folders", () =>
  inFolder(async (outer) => {
    const folder = `${outer}/work`;
    await write(outer, {
      "outside/secret/SKILL.md": skillText("secret"),
      "outside/secret/key.txt": "k",
      "work/skills/own/SKILL.md": skillText("own"),
      "work/skills/file/other.md": "x",
    });
    await Deno.symlink(`${outer}/outside/secret`, `${folder}/skills/linked`);
    await Deno.symlink(`${outer}/outside/secret/SKILL.md`, `${folder}/skills/file/SKILL.md`);
    await Deno.symlink(`${outer}/outside/secret`, `${folder}/skills/own/more`);
    await Deno.symlink(`${outer}/outside`, `${folder}/.claude`);
    const { description, warnings, call } = await mounted(folder);
    assertStringIncludes(description, "Skills:\n- own: Use own.\nNo skills:\n");
    assertEquals(await call("own"), `Folder: ${folder}/skills/own\n\nDo own.`);
    assertEquals(warnings.length, 2);
    for (const warning of warnings) {
      assertStringIncludes(warning, `cannot be read: only files in ${folder} may`);
    }
    const named = await mounted(folder, { skills: [`${outer}/outside`, "../outside"] });
    assertEquals([named.description.includes("secret"), named.warnings.length], [false, 2]);
    // a skill that is exchanged for a link after it was found
    await Deno.remove(`${folder}/skills/own/SKILL.md`);
    await Deno.symlink(`${outer}/outside/secret/SKILL.md`, `${folder}/skills/own/SKILL.md`);
    assertStringIncludes(await call("own"), "cannot be read: only files in");
  }));

Deno.test("the list of many skills, their problems and the files of one are bounded", () =>
  inFolder(async (folder) => {
    const files: Record<string, string> = {};
    for (let index = 100; index < 610; index++) {
      files[`skills/s${index}/SKILL.md`] = index < 130 ? "---" : skillText(`s${index}`, "é".repeat(900));
    }
    for (let index = 0; index < 105; index++) files[`skills/s200/f${index}.txt`] = "";
    await write(folder, files);
    const { description, warnings, call } = await mounted(folder);
    const lines = description.split("\n").filter((line) => line.startsWith("- s"));
    assertEquals([lines.length, lines[0]!.startsWith("- s130: éé"), lines[0]!.endsWith("é…")], [
      470,
      true,
      true,
    ]);
    assert(description.length < 45_000);
    assertEquals(warnings.slice(20), [
      "Cannot use 10 more skills",
      "Cannot look for skills in more than 500 folders: 10 are left out",
    ]);
    const listed = (await call("s200")).split("\n").filter((line) => line.startsWith("- "));
    assertEquals([listed.length, listed.at(-1)], [101, "- …"]);
  }));

Deno.test("mount() refuses a missing grant, folders that nothing states, and addresses", async () => {
  const mount = (config: JsonObject, read: string[] | boolean) =>
    skills.mount(fakeCoordinator({}, {}, { read }).coordinator, config);
  for (const read of [[], false, true]) {
    await assertRejects(() => mount({}, read), Error, "its folders are unknown: give its entry permissions");
  }
  for (const path of ["git+https://example.com/skills@main", "/plans/git+https:/example.com/skills"]) {
    await assertRejects(
      () => mount({ skills: [path] }, ["/srv"]),
      Error,
      "must be a folder on this machine: clone it",
    );
  }
  await inFolder(async (folder) => {
    await write(folder, { "a/SKILL.md": skillText("a") });
    const { coordinator } = fakeCoordinator({}, {}, { read: true });
    await skills.mount(coordinator, { skills: [folder] });
    assertStringIncludes(coordinator.tools.skill!.description!, "- a: Use a.");
  });
});
