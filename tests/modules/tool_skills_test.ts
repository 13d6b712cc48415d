import type { JsonObject } from "preamp";
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
  const { coordinator, emitted } = fakeCoordinator({}, {}, { read: [folder] });
  await skills.mount(coordinator, config);
  const tool = coordinator.tools.skill!;
  return {
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

Deno.test("a file that is no valid skill is left out, with its path and the rule", () =>
  inFolder(async (folder) => {
    const bad: [file: string | Uint8Array, rule: string][] = [
      ["# Title", "must begin with name and description between two lines of ---"],
      ["---\nname: a\n", "must begin with name and description between two lines of ---"],
      [skillText("a", "Use when: it rains"), "has no valid YAML in line 3: "],
      [skillText("a", "&a [*a]"), "must have a description of 1 to 1024 characters: received 0"],
      [
        skillText("My_Skill"),
        "must have a name of lower-case words joined by hyphens, at most 64 characters",
      ],
      [skillText("a".repeat(65)), "must have a name of lower-case words"],
      ["---\n- a\n---\n", "must have a name of lower-case words"],
      [skillText("a", ""), "must have a description of 1 to 1024 characters: received 0"],
      [skillText("a", "x".repeat(1025)), "must have a description of 1 to 1024 characters: received 1025"],
      [skillText("a", "x", "y".repeat(64 * 1024)), "bytes; at most 65536 can be read at once"],
    ];
    for (const [index, [text]] of bad.entries()) await write(folder, { [`skills/s${index}/SKILL.md`]: text });
    await write(folder, { "skills/t/SKILL.md": skillText("2048", "Fine") });
    const { description, warnings } = await mounted(folder);
    assert(description.endsWith("Skills:\n- 2048: Fine"));
    for (const [index, [, rule]] of bad.entries()) {
      assertStringIncludes(warnings[index]!, `skills/s${index}/SKILL.md `);
      assertStringIncludes(warnings[index]!, rule);
    }
    assertEquals(warnings.length, bad.length);
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
    assert(description.endsWith("Skills:\n- own: Use own."));
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
      files[`skills/s${index}/SKILL.md`] = index < 130 ? "bad" : skillText(`s${index}`, "é".repeat(900));
    }
    for (let index = 0; index < 105; index++) files[`skills/s200/f${index}.txt`] = "";
    await write(folder, files);
    const { description, warnings, call } = await mounted(folder);
    const lines = description.split("\n").slice(1);
    assertEquals([lines.length, lines[0]!.startsWith("- s130: éé"), lines[0]!.endsWith("é…")], [
      470,
      true,
      true,
    ]);
    assert(description.length < 17_000);
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
