import { attachedFiles, fenced, filesText } from "../../src/cli/prompt_files.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { jpeg, PNG, png } from "../support/images.ts";

const image = (data: string, media_type = "image/png") => ({
  type: "image",
  source: { type: "base64", media_type, data },
});

async function folderOf() {
  const temporary = await temporaryFolder();
  return {
    path: temporary.path,
    url: new URL(`file://${temporary.path}/`),
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  };
}

Deno.test("attachedFiles() adds the pictures that are named, once each", async () => {
  await using folder = await folderOf();
  const photo = jpeg(4, 4);
  await Deno.writeFile(`${folder.path}/a.png`, png(1, 1));
  await Deno.writeFile(`${folder.path}/my photo.JPG`, photo);
  const read = async (text: string, images: string[] = []) =>
    (await attachedFiles(text, { folder: folder.url, names_texts: false, images })).map(({ block }) => block);
  const both = [image(PNG), image(photo.toBase64(), "image/jpeg")];
  assertEquals(await read("mail ada@example.com, see logo@a.png and @ada"), []);
  for (const text of ['compare @a.png and @"my photo.JPG".', 'compare @a.png, @a.png, @"my photo.JPG"']) {
    assertEquals(await read(text), both);
  }
  assertEquals(await read("look", ["a.png"]), [image(PNG)]);
});

Deno.test("attachedFiles() sends the text of files in the folder, bounded, where the text may name them", async () => {
  await using folder = await folderOf();
  await Deno.mkdir(`${folder.path}/src`);
  await Deno.writeTextFile(`${folder.path}/src/a.ts`, "const a = 1;\n```\n");
  await Deno.writeTextFile(`${folder.path}/long.txt`, "é".repeat(100_000));
  const read = (text: string, names_texts = true) => attachedFiles(text, { folder: folder.url, names_texts });
  const [a] = await read("what is wrong in @src/a.ts?");
  assertEquals(a!.block, { type: "text", text: "File src/a.ts:\n\n````text\nconst a = 1;\n```\n````" });
  assertEquals(await read("see @src/a.ts", false), [], "a script may have got the text from anyone");
  assertEquals(await read("see @ada, @src and @none.ts"), []);
  assertEquals(await read("see @/etc/hosts @../../etc/hosts"), [], "a pasted text may name any path");
  const [long] = await read("@long.txt");
  assertEquals([long!.bytes, long!.sent_bytes], [200_000, 131_072]);
  assertMatch(
    (long!.block as { text: string }).text,
    /^File long.txt, its first 131072 of 200000 bytes:\n\n```text\né+\n```$/,
  );
  assertMatch(
    filesText([a!, long!]),
    /^src\/a\.ts \(17 bytes\), long\.txt \(128\.0 KB of 195\.3 KB\): about [\d,]+ tokens$/,
  );
});

Deno.test("attachedFiles() refuses what cannot be sent, in words", async () => {
  await using folder = await folderOf();
  await Deno.writeTextFile(`${folder.path}/text.png`, "text");
  await Deno.writeFile(`${folder.path}/large.png`, new Uint8Array(3_932_161));
  await Deno.writeFile(`${folder.path}/binary`, new Uint8Array(10));
  const options = { folder: folder.url, names_texts: true };
  const refused = async (of: { files?: string[]; images?: string[] }) =>
    (await assertRejects(() => attachedFiles("look", { ...options, ...of }))).message;
  assertStringIncludes(await refused({ images: ["text.png"] }), "it is no PNG, JPEG, GIF or WebP");
  assertStringIncludes(await refused({ images: ["none.png"] }), "there is no such file");
  assertStringIncludes(await refused({ images: ["large.png"] }), "3932161 bytes, and models take 3932160");
  assertStringIncludes(await refused({ images: ["."] }), "it is no file");
  assertStringIncludes(await refused({ files: ["none.txt"] }), "there is no such file");
  assertStringIncludes(await refused({ files: ["binary"] }), "it is no text");
  assertStringIncludes(
    await refused({ files: Array.from({ length: 21 }, (_, at) => `${at}`) }),
    "Cannot send 21 files",
  );
});

Deno.test("fenced() makes a fence that the text cannot close", () => {
  assertEquals(fenced("a\n````\nb\n"), "`````text\na\n````\nb\n`````");
});
