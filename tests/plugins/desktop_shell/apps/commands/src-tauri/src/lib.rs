#[tauri::command]
fn greet() {}

pub fn run() {
    tauri::Builder::default()
        .invoke_handler(tauri::generate_handler![greet, // the first
            store::save_note])
        .run(tauri::generate_context!())
        .unwrap();
}
