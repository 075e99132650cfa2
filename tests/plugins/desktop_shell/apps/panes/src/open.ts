new WebviewWindow(`editor-${id}`, {url: 'edit.html'});
