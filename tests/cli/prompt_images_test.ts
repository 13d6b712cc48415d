import { withPictures } from "../../src/cli/prompt_images.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { jpeg, PNG, png } from "../support/images.ts";

const image = (data: string, media_type = "image/png") => ({
  type: "image",
  source: { type: "base64", media_type, data },
});

Deno.test("withPictures() adds the files that are named, once each, and none of piped text", async () => {
  await using folder = await temporaryFolder();
  const cwd = new URL(`file://${folder.path}/`);
  const photo = jpeg(4, 4);
  await Deno.writeFile(`${folder.path}/a.png`, png(1, 1));
  await Deno.writeFile(`${folder.path}/my photo.JPG`, photo);
  const read = (text: string, files: string[] = [], said = text) => withPictures(text, said, files, cwd);
  const both = [image(PNG), image(photo.toBase64(), "image/jpeg")];
  assertEquals(
    await read("mail ada@example.com, see logo@a.png and @ada"),
    "mail ada@example.com, see logo@a.png and @ada",
  );
  for (const text of ['compare @a.png and @"my photo.JPG".', 'compare @a.png, @a.png, @"my photo.JPG"']) {
    assertEquals(await read(text), [{ type: "text", text }, ...both]);
  }
  assertEquals(await read("look", ["a.png"]), [{ type: "text", text: "look" }, image(PNG)]);
  assertEquals(await read("look\n\nStandard input: @a.png", [], "look"), "look\n\nStandard input: @a.png");
});

Deno.test("withPictures() refuses what is no picture, in words", async () => {
  await using folder = await temporaryFolder();
  const cwd = new URL(`file://${folder.path}/`);
  await Deno.writeTextFile(`${folder.path}/text.png`, "text");
  await Deno.writeFile(`${folder.path}/large.png`, new Uint8Array(3_932_161));
  const refused = async (file: string) =>
    (await assertRejects(() => withPictures("look", "look", [file], cwd))).message;
  assertStringIncludes(await refused("text.png"), "it is no PNG, JPEG, GIF or WebP");
  assertStringIncludes(await refused("none.png"), "there is no such file");
  assertStringIncludes(await refused("large.png"), "3932161 bytes, and models take 3932160");
  assertStringIncludes(await refused("."), "it is no file");
});
