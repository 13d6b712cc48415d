/** Puts files back that a run has changed; see src/docs/chat.md#undo. */
import { FileAccess, FileError } from "../../modules/files/access.ts";
import type { ChangedFiles } from "../runs/ports.ts";
import { parentFolder } from "../sdk/paths.ts";

/** Bytes of a file that are compared; the tools of `tool-filesystem` write no larger ones. */
const MAX_BYTES = 32 * 1024 * 1024;

/** The files of this host, within what each change says that its module may write. */
export const changedFiles: ChangedFiles = {
  async stateOf(path) {
    const info = await infoOf(path);
    if (info?.isSymlink) return { mode: null, link: await Deno.readLink(path), made_folders: 0 };
    const mode = info?.mode == null ? null : info.mode & 0o7777;
    if (info !== null) return { mode, link: null, made_folders: 0 };
    let made_folders = 0;
    for (let folder = parentFolder(path); await infoOf(folder) === null; folder = parentFolder(folder)) {
      if (folder === parentFolder(folder)) break;
      made_folders++;
    }
    return { mode, link: null, made_folders };
  },

  async putBack({ path, before, after_sha256, link = null, after_link = null, mode, made_folders, write }) {
    const access = new FileAccess({ read: write, write });
    try {
      const { path: real, info } = await access.entry(path);
      if (real !== path) return "a link leads elsewhere now";
      const bytes = before === null ? null : Uint8Array.fromBase64(before);
      const now = info === null
        ? null
        : info.isSymlink
        ? `link ${await Deno.readLink(path)}`
        : await sha256((await access.read(path, MAX_BYTES)).bytes);
      const was = link !== null ? `link ${link}` : bytes && await sha256(bytes);
      if (now === was) return null; // the change failed, or was put back and is not forgotten yet
      if (now !== (after_link === null ? after_sha256 : `link ${after_link}`)) {
        return now === null ? "it was deleted since" : "it was changed since";
      }
      if (info?.isSymlink || info && (bytes === null || link !== null)) await access.remove(path);
      if (link !== null) await Deno.symlink(link, path);
      else if (bytes !== null) await access.replace(path, bytes, mode ?? undefined);
      else await removeEmptyFolders(path, made_folders);
      return null;
    } catch (error) {
      if (error instanceof SyntaxError) return "its module kept no base64";
      if (error instanceof FileError) return "it cannot be reached, or is no file within the plan's grant";
      if (error instanceof Error && error.name in Deno.errors) {
        return `the file system refuses: ${error.name}`;
      }
      throw error;
    }
  },
};

async function infoOf(path: string): Promise<Deno.FileInfo | null> {
  return await Deno.lstat(path).catch(() => null);
}

/** Deletes at most `count` folders above a file, up to the first one that is not empty, or a link. */
async function removeEmptyFolders(path: string, count: number): Promise<void> {
  let folder = parentFolder(path);
  for (let left = count; left > 0 && (await infoOf(folder))?.isDirectory; left--) {
    const is_removed = await Deno.remove(folder).then(() => true, () => false); // false: it is not empty
    if (!is_removed) return;
    folder = parentFolder(folder);
  }
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice())).toHex();
}
