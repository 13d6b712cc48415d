/** Puts files back that a run has changed; see src/docs/chat.md#undo. */
import { FileAccess, FileError } from "../../modules/files/access.ts";
import type { ChangedFiles } from "../runs/ports.ts";

/** Bytes of a file that are compared; the tools of `tool-filesystem` write no larger ones. */
const MAX_BYTES = 32 * 1024 * 1024;

/** The files of this host, within what each change says that its module may write. */
export const changedFiles: ChangedFiles = {
  async modeOf(path) {
    const info = await Deno.lstat(path).catch(() => null);
    return info?.mode == null ? null : info.mode & 0o7777;
  },

  async putBack({ path, before, after_sha256, mode, write }) {
    const access = new FileAccess({ read: write, write });
    try {
      const target = await access.writable(path);
      if (target.path !== path) return "a link leads elsewhere now";
      const now = target.info === null ? null : (await access.read(path, MAX_BYTES)).bytes;
      const bytes = before === null ? null : Uint8Array.fromBase64(before);
      if (isSame(now, bytes)) return null; // the change failed, or was put back and is not forgotten yet
      if ((now && await sha256(now)) !== after_sha256) {
        return now === null ? "it was deleted since" : "it was changed since";
      }
      if (bytes === null) await access.remove(path);
      else await access.replace(path, bytes, mode ?? undefined);
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

function isSame(one: Uint8Array | null, other: Uint8Array | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice())).toHex();
}
