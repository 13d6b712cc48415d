import { FileAccess, FileError } from "../../../modules/files/access.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";

/** A granted folder `in` with a file and links, beside a folder `out` that is not granted. */
async function withFolders(use: (access: FileAccess, folder: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/in/sub`, { recursive: true });
  await Deno.mkdir(`${folder}/out`);
  await Deno.writeTextFile(`${folder}/in/a.txt`, "inside");
  await Deno.writeTextFile(`${folder}/out/secret.txt`, "outside");
  await Deno.symlink(`${folder}/out`, `${folder}/in/folder_link`);
  await Deno.symlink(`${folder}/out/secret.txt`, `${folder}/in/file_link`);
  await Deno.symlink(`${folder}/out/new.txt`, `${folder}/in/broken_link`);
  await Deno.symlink(`${folder}/in/a.txt`, `${folder}/in/inner_link`);
  await Deno.link(`${folder}/out/secret.txt`, `${folder}/in/hard_link`);
  await use(new FileAccess({ read: [`${folder}/in`], write: [`${folder}/in`] }), folder);
}

const read = async (access: FileAccess, path: string) =>
  new TextDecoder().decode((await access.read(path, 1000)).bytes);

Deno.test("read() reaches files of the grant by any spelling of their path", () =>
  withFolders(async (access, folder) => {
    for (
      const path of [
        "a.txt",
        "./sub/../a.txt",
        `${folder}/in/a.txt`,
        `${folder}/out/../in//a.txt`,
        "inner_link",
      ]
    ) {
      assertEquals(await read(access, path), "inside");
    }
    assertEquals(access.display(`${folder}/in/sub/b`), "sub/b");
    assertEquals([access.display(`${folder}/in`), access.display(`${folder}/out`)], [".", `${folder}/out`]);
  }));

Deno.test("nothing outside of the grant is read, written or deleted, whatever the path", () =>
  withFolders(async (access, folder) => {
    const paths = [
      "../out/secret.txt",
      `${folder}/out/secret.txt`,
      "folder_link/secret.txt",
      "file_link",
      "sub/../../out/secret.txt",
      "folder_link/new/deep.txt",
      "broken_link",
      "a\0.txt",
      "/proc/self/environ",
      `${folder}/inside_by_prefix`,
    ];
    for (const path of paths) {
      await assertRejects(() => access.read(path, 1000), FileError);
      await assertRejects(() => access.replace(path, new Uint8Array(1)), FileError);
      if (!path.endsWith("_link")) await assertRejects(() => access.remove(path), FileError);
    }
    for (const link of ["file_link", "broken_link", "folder_link"]) { // a link itself is inside
      await access.remove(link);
      await assertRejects(() => Deno.lstat(`${folder}/in/${link}`), Deno.errors.NotFound);
    }
    assertEquals(await Array.fromAsync(Deno.readDir(`${folder}/out`), ({ name }) => name), ["secret.txt"]);
    assertEquals(await Deno.readTextFile(`${folder}/out/secret.txt`), "outside");
    const missing = await assertRejects(() => access.readable("../out/none"), FileError);
    const existing = await assertRejects(() => access.readable("../out/secret.txt"), FileError);
    const shape = ({ message }: Error) => message.replace(/\.\.\/out\/\S+/, "");
    assertEquals(shape(missing), shape(existing)); // whether it exists is not visible
  }));

Deno.test("replace() does not write through a hard link, keeps the mode, and creates folders", () =>
  withFolders(async (access, folder) => {
    await access.replace("hard_link", new TextEncoder().encode("changed"));
    assertEquals(await Deno.readTextFile(`${folder}/out/secret.txt`), "outside");
    assertEquals(await Deno.readTextFile(`${folder}/in/hard_link`), "changed");
    await Deno.chmod(`${folder}/in/a.txt`, 0o750);
    await access.replace("inner_link", new TextEncoder().encode("new"));
    assertEquals((await Deno.stat(`${folder}/in/a.txt`)).mode! & 0o777, 0o750);
    assert((await Deno.lstat(`${folder}/in/inner_link`)).isSymlink);
    if ((await Deno.stat(folder)).uid === 0) { // only root may give files away
      await Deno.chown(`${folder}/in/a.txt`, 12345, 12346);
      await Deno.chmod(`${folder}/in/a.txt`, 0o4750);
      await access.replace("a.txt", new TextEncoder().encode("newer"));
      const { uid, gid, mode } = await Deno.stat(`${folder}/in/a.txt`);
      assertEquals([uid, gid, mode! & 0o7777], [12345, 12346, 0o4750]);
    }
    assertEquals(await access.replace("new/deep/b.txt", new Uint8Array()), `${folder}/in/new/deep/b.txt`);
    const left = await Array.fromAsync(Deno.readDir(`${folder}/in`), ({ name }) => name);
    assert(left.every((name) => !name.endsWith(".tmp")));
  }));

Deno.test("folders, pipes, devices and files that are too large are refused", () =>
  withFolders(async (access, folder) => {
    const made = await new Deno.Command("mkfifo", { args: [`${folder}/in/pipe`] }).output();
    assert(made.success);
    for (const path of ["sub", "pipe"]) {
      await assertRejects(() => access.read(path, 1000), FileError, "not a file");
      await assertRejects(() => access.replace(path, new Uint8Array()), FileError, "not a file");
    }
    await assertRejects(() => access.read("a.txt", 5), FileError, "6 bytes");
    const all = new FileAccess({ read: true, write: false });
    await assertRejects(() => all.read("/dev/zero", 1000), FileError, "device");
    await assertRejects(() => all.read("relative", 1000), FileError, "absolute");
    await assertRejects(
      () => all.replace(`${folder}/in/a.txt`, new Uint8Array()),
      FileError,
      "nothing may be",
    );
  }));

Deno.test("a path that is exchanged for a link while it is read never leads outside", () =>
  withFolders(async (access, folder) => {
    await Deno.writeTextFile(`${folder}/in/sub/secret.txt`, "inside");
    let stop = false;
    const swap = (async () => {
      while (!stop) {
        await Deno.rename(`${folder}/in/sub`, `${folder}/in/kept`);
        await Deno.symlink(`${folder}/out`, `${folder}/in/sub`);
        await Deno.remove(`${folder}/in/sub`);
        await Deno.rename(`${folder}/in/kept`, `${folder}/in/sub`);
        for (let pause = 0; pause < 20; pause++) await Deno.stat(folder); // whole for a while
      }
    })();
    const seen = new Set<string>();
    for (let tries = 0; tries < 300 || !seen.has("inside") && tries < 5000; tries++) {
      seen.add(await read(access, "sub/secret.txt").catch(() => "refused"));
    }
    stop = true;
    await swap;
    assert(!seen.has("outside"));
    assert(seen.has("inside"));
  }));
