/** The list of keys. */
import type { AppState } from "../state/app_state.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ACTIONS } from "./actions.ts";

const IN_PLACE = [
  ["Enter", "run, steer; in the palette: open"],
  ["Shift Enter", "a new line in the prompt"],
  ["Ctrl Enter", "run, from the plan"],
  ["Ctrl ] and [", "indent lines of the plan, and take it back"],
  ["↑ and ↓", "in the log: the entry before and after; Enter opens it"],
  ["← and →", "what was sent: the call before and after"],
  ["Esc", "close what is open; leave the prompt or the plan"],
];

/** The dialog with all keys. */
export function KeysDialog({ state }: { state: AppState }) {
  const close = () => state.overlay.value = null;
  return (
    <Dialog label="Keys" onClose={close}>
      <h2>Keys</h2>
      <table class="keys">
        <tbody>
          {[...ACTIONS.map(({ keys, label }) => [keys, label]), ...IN_PLACE].map(([keys, label]) => (
            <tr key={keys}>
              <td>
                <kbd>{keys}</kbd>
              </td>
              <td>{label}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted">Single keys work while you are not typing. On a Mac, ⌘ is Ctrl.</p>
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
    </Dialog>
  );
}
